"""All results of one store: the exit code, what is incomplete, and which loss is told."""

from __future__ import annotations

import pytest

from schemas.advice import Cause, Gap, LeftOut
from schemas.losses import LossOfStart, TopicLoss
from schemas.rows import DEFAULT, LOSS, NOTE, REBUILDABLE, Finding
from store_io.broker.prediction import Memory, Prediction
from store_io.model.found_gaps import Gaps
from store_io.model.loss import Loss, QueueLoss
from store_io.outcome.plan_writer import audit_plan
from store_io.outcome.store_outcome import Judged, failed_outcome, loss_of_start, store_outcome
from store_io.wording.gaps import gap_text
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, request_of, segment

COPY = copy_of({log_path(0): SEGMENT})
NOTHING = Memory([], {}, [])
STARTS = Prediction(True, False, after_load=NOTHING, after_dispatch=NOTHING)
READ = segment(0, {}, first_store_time=5, last_store_time=9)
X, LATE = Gap(Cause.NOT_LISTED, "x"), Gap(Cause.TIME_LIMIT, values=(LeftOut.LEFTOVERS,))
NO_STORE = Gap(Cause.NOT_A_STORE, values=("not a store",))


@pytest.mark.parametrize(
    ("severity", "complete", "code"),
    [(NOTE, True, 0), (REBUILDABLE, True, 10), (LOSS, True, 20), (NOTE, False, 3), (REBUILDABLE, False, 3), (LOSS, False, 20)],
)
def test_the_exit_code_follows_from_severity_and_completeness_alone(severity: str, complete: bool, code: int) -> None:
    judged = Judged([Finding("queue_file_empty", "q", severity=severity)], Gaps([] if complete else [X]))
    out = store_outcome(evidence_of(COPY, segments=[READ], prediction=STARTS, loss=Loss()), judged)
    assert (out.exit_code, out.complete, audit_plan(out)["complete"], out.found.counts) == (
        code,
        complete,
        complete,
        {severity: 1},
    )
    assert (out.effect is None) is not complete
    assert (out.holds.messages, out.holds.first_store_time, out.holds.last_store_time, out.holds.log_end) == (1, 5, 9, SEGMENT)


def test_what_was_left_out_on_purpose_makes_it_incomplete_and_still_predicts() -> None:
    judged = Judged([], Gaps([LATE]))
    out = store_outcome(evidence_of(COPY, prediction=STARTS, loss=Loss()), judged)
    assert (out.complete, out.incomplete, out.exit_code) == (False, [gap_text(LATE)], LATE.exit_code)
    assert out.gaps == [LATE] and [row["cause"] for row in audit_plan(out)["gaps"]] == ["time_limit"]
    assert audit_plan(out)["broker"]["lost"] == {"messages": 0, "bytes": 0, "by_queue": []}


def test_an_audit_that_could_not_be_made_has_the_same_plan_without_content() -> None:
    out = failed_outcome(request_of(release_from=DEFAULT), [NO_STORE, NO_STORE])
    whole = store_outcome(evidence_of(COPY), Judged([], Gaps()))
    assert (
        list(audit_plan(out)) == list(audit_plan(whole))
        and list(audit_plan(out)["inputs"]) == []
        and audit_plan(out)["release_from"] == DEFAULT
    )
    assert (out.exit_code, out.incomplete) == (3, ["not a store"])


def test_loss_is_told_by_topic() -> None:
    queues = {("T", 0): QueueLoss(2, 20, 50, 60), ("T", 1): QueueLoss(1, 10, 40, 45), ("U", 0): QueueLoss(1, 5, 7, 7)}
    rows = loss_of_start(Loss(queues))
    assert rows == LossOfStart(4, 35, (TopicLoss("T", 3, 40, 60), TopicLoss("U", 1, 7, 7)))
    assert loss_of_start(None) == LossOfStart()

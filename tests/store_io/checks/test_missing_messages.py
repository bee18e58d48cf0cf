"""What is gone from a copy is a number of messages, the same wherever it is told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.cli.terminal import GREEN
from jobs.report.files.result_files import result_json
from jobs.report.pages.report_html import report_html
from jobs.report.texts.summary_text import summary_text
from schemas.losses import Missing
from schemas.outcome import Outcome
from schemas.rows import LOSS
from store_io.answer.headline import judge
from store_io.audit.audit_store import run_audit
from store_io.checks.missing_messages import missing_text
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support import damage
from tests.support.handmade import samples
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

MESSAGES, SEGMENT = 60, 1 << 13


def made(root: Path) -> Store:
    builder = StoreBuilder("5.3.3", Sizes(segment=SEGMENT))
    for number in range(MESSAGES):
        builder.clock += 10
        builder.put(Message("T", number % 2, bytes([number]) * 200, keys=f"k{number}", uniq=f"U{number:03}"))
    offsets = {"offsetTable": {"T@g": {"0": 20, "1": 25}, "T@h": {"0": 22}}}
    return builder.write(root, config={"consumerOffset.json": json.dumps(offsets)})


def segments(store: Store) -> list[Path]:
    return sorted((store.root / "commitlog").iterdir())


def zeroed(*paths: Path) -> None:
    for path in paths:
        path.write_bytes(bytes(path.stat().st_size))


def gone(store: Store) -> None:
    shutil.rmtree(store.root / "commitlog")
    (store.root / "commitlog").mkdir()


def without_queues(change: Callable[[Store], object]) -> Callable[[Store], None]:
    def changed(store: Store) -> None:
        change(store)
        shutil.rmtree(store.root / "consumequeue")

    return changed


def audited(store: Store) -> Outcome:
    location = StoreLocation(str(store.root))
    return run_audit(AuditRequest("s", location, store.release, store.broker_conf, perhaps_emptied=True)).outcome()


@pytest.mark.parametrize(
    ("change", "number", "least"),
    [
        (lambda s: segments(s)[1].unlink(), None, False),
        (lambda s: segments(s)[-1].unlink(), None, False),
        (lambda s: zeroed(segments(s)[1]), None, False),
        (lambda s: segments(s)[1].write_bytes(b""), None, False),
        (without_queues(lambda s: segments(s)[1].unlink()), None, True),
        (lambda s: damage.zero_range(segments(s)[1], 300, 340), 1, False),
        (gone, MESSAGES, False),
        (lambda s: zeroed(*segments(s)), MESSAGES, False),
        (without_queues(gone), 22 + 25, True),
        (without_queues(lambda s: zeroed(*segments(s))), 22 + 25, True),
    ],
    ids=["gap", "last", "zeros", "empty file", "gap, no queue", "record", "no log", "all zeros", "offsets", "zeros, offsets"],
)
def test_what_is_gone_is_the_same_number_everywhere(
    change: Callable[[Store], object], number: int | None, least: bool, tmp_path: Path
) -> None:
    store = made(tmp_path / "store")
    change(store)
    outcome = audited(store)
    number = MESSAGES - outcome.holds.messages if number is None else number
    assert outcome.whole.missing == Missing(number, least) and number
    text = missing_text(outcome.whole.missing)
    assert text == ("at least " if least else "") + f"{number} message{'' if number == 1 else 's'}"
    judged = judge(outcome)
    assert text.lower() in " ".join([judged.headline, *judged.why]).lower()
    told, page = summary_text(samples.RUN, [outcome], "/out"), "".join(report_html(outcome))
    assert text.lower() in " ".join(told.lower().split()) and f">{text}<" in page
    (row,) = json.loads(result_json(samples.RUN, [outcome]))["stores"]
    assert (row["missing_messages"], row["missing_at_least"]) == (number, least)
    log = [f for f in outcome.found.findings if f.severity == LOSS and f.code in ("segment_missing", "message_lost")]
    if not least and outcome.holds.messages and number > 1:
        assert sum(f.count for f in log) == number
    emptied = [f for f in outcome.found.findings if f.code == "commitlog_emptied"]
    assert bool(emptied) is not bool(outcome.holds.messages) and all(f.count == number and text in f.message for f in emptied)
    if not outcome.holds.messages:
        assert GREEN not in summary_text(samples.RUN, [outcome], "/out", True) and '"c-safe' not in page


def test_nothing_is_missing_from_a_whole_copy_and_a_damaged_header_names_no_number(tmp_path: Path) -> None:
    store = made(tmp_path / "store")
    assert audited(store).whole.missing is None
    damage.zero_range(segments(store)[0], 300, 340)
    far = next(record for record in store.records if record.at > 2000)
    damage.set_field(store, far, "queueOffset", lambda number: number ^ 1 << 30)
    shutil.rmtree(store.root / "consumequeue")
    assert (missing := audited(store).whole.missing) is None or missing.messages < 5

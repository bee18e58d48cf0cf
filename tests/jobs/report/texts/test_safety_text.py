"""The answer: which copies are safe to start, and which one is the most dangerous."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jobs.installation import ENTRY
from jobs.report.pages.index_html import index_html
from jobs.report.texts.next_steps import shown_steps
from jobs.report.texts.safety_text import most_dangerous_first
from jobs.report.texts.summary_text import summary_text
from schemas.advice import Refusal, RefusalKind
from schemas.answer import StepName
from schemas.first_day import FirstDay, Retention, StartMoment, TimersOfDay
from schemas.outcome import Outcome
from schemas.rows import ConfigTables, PlanStep
from schemas.start_effect import ConfigLoad
from store_io.answer.headline import judge
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter, varied
from tests.support.texts.pages import page_of


@pytest.mark.parametrize(
    ("make", "kind", "headline"),
    [
        (samples.clean, "safe", "Safe to start"),
        (samples.refused, "refuses", "RocketMQ 5.3.3 does not start on this copy: commitlog/x.swp: the name is not a number"),
        (samples.not_audited, "unknown", f"Could not be audited: {samples.not_audited().incomplete[0]}"),
    ],
    ids=["clean", "refused", "not-audited"],
)
def test_the_answer(make: Any, kind: str, headline: str) -> None:
    answer = judge(make())
    assert (answer.kind, answer.headline) == (kind, headline)


@pytest.mark.parametrize(
    ("kept", "timers", "first"),
    [
        (
            Retention(72, "04", at_once=("a", "b"), in_delete_when=("c",)),
            TimersOfDay(never=9),
            "keep 3 segments that the broker deletes",
        ),
        (
            Retention(72, "04", if_disk_full=("a",)),
            TimersOfDay(never=9),
            "see to 9 timer messages that the broker never delivers",
        ),
        (Retention(72, "04"), TimersOfDay(at_once=5, start_before_ms=1), ""),
        (None, None, ""),
    ],
)
def test_what_the_broker_does_by_itself_is_named_with_its_moment(kept: Any, timers: Any, first: str) -> None:
    outcome = samples.clean()
    alter(outcome, first_day=FirstDay(StartMoment(1_795_879_455_000), kept, timers))
    headline = judge(outcome).headline
    if not first:
        assert headline == "Safe to start"
    else:
        assert headline.startswith(f"Safe to start, but first {first}") and headline.endswith(
            " if it starts 2026-11-28 15:24 UTC"
        )


def test_a_damaged_store_that_was_not_wholly_read_is_not_safe() -> None:
    outcome = samples.damaged()
    alter(outcome, effect=None, incomplete=["commitlog/0: cannot be read"])
    assert judge(outcome).kind == "stop"
    assert "cannot be read" in page_of(outcome).text


def test_what_is_gone_is_never_called_safe() -> None:
    gone, less, new = judge(samples.emptied()), judge(samples.shrunk()), judge(samples.empty())
    assert gone.headline == "Nothing to lose is left here; the audit of 2026-11-20 02:15 UTC saw 2,153 messages"
    assert less.headline == "Messages are gone from the end of this copy; the audit of 2026-11-20 02:15 UTC saw 2,153 messages"
    assert new.headline == "This copy holds no message, and nothing in it shows that it ever held one"
    assert (gone.kind, less.kind, new.kind) == ("gone", "gone", "empty")
    known = samples.emptied()
    alter(known, findings=known.found.findings[:1])
    assert judge(known).headline == "Nothing to lose is left here; there were messages once"
    broken = samples.shrunk()  # what a start would cut, or a release that refuses, is told first
    samples.with_refusal(broken, Refusal(RefusalKind.FILE_NAME, "commitlog/x"))
    assert judge(broken).kind == "refuses"
    for outcome in (samples.emptied(), samples.shrunk(), samples.empty()):
        text = summary_text(samples.RUN, [outcome], "out").lower()
        page = "".join(index_html(samples.RUN, [outcome])).lower()
        assert "safe to start" not in text and "is safe to start" not in page
    acting = samples.emptied()
    alter(acting, segment_count=1)
    alter(acting, steps=[PlanStep.whole("rebuild", "checkpoint", "")])
    text = summary_text(samples.RUN, [acting], "out", words=("/copies/wiped", "--release", "5.3.3"))
    assert f"{ENTRY} repair" not in text and "Do not start this copy: a start deletes queues and index files" in " ".join(
        text.split()
    )
    alter(acting, queues=[], index_files=[])
    assert "a start deletes" not in " ".join(summary_text(samples.RUN, [acting], "out").split())


LACKS = (
    "In its group, master holds 300 messages that this copy lacks; it and master differ, where this copy holds 20 messages that"
    " master lacks."
)


@pytest.mark.parametrize("parted", [False, True])
def test_a_copy_that_lacks_messages_of_its_group_is_never_called_safe(parted: bool) -> None:
    alone, slave = judge(samples.clean()), judge(samples.behind(samples.clean(), parted))
    assert alone.kind == "safe" and slave.kind == ("diverged" if parted else "lacks")
    earlier = "Start master, which holds 300 later messages, as master: this copy is an earlier moment of it"
    each = "Do not start this copy as master: it and master each hold messages that the other lacks"
    assert slave.headline == (each if parted else earlier) and slave.why == (*([LACKS] if parted else []), *alone.why)
    worse = judge(samples.behind(samples.damaged(), parted))  # of two answers the graver is the headline, the other a reason
    assert worse.headline == judge(samples.damaged()).headline
    assert worse.why[-1] == (LACKS if parted else f"{earlier}.")
    told = judge(samples.behind(samples.rebuild(), parted))
    assert told.kind == slave.kind and told.why[parted].startswith("A start loses no message, but a rebuild is needed: ")
    others = [samples.refused(), samples.behind(samples.clean(), parted), samples.clean()]
    assert [outcome.name for outcome, _ in most_dangerous_first(others)] == ["stuck", "calm", "calm"]
    assert [j.kind for _, j in most_dangerous_first(others)][1:] == [slave.kind, "safe"]
    page = "".join(index_html(samples.RUN, [samples.behind(samples.clean(), parted)]))
    of_group = "has diverged from another copy: choose a master first" if parted else "lacks messages of its group: do not"
    assert f"1 of 1 store {of_group}" in page
    text = summary_text(samples.RUN, others, "out")
    (line,) = (line for line in text.splitlines() if line.startswith("   0  calm ") and "master" in line)
    assert line.split()[3:5] == (["other_copy", "other"] if parted else ["start", "condition"])
    assert line.endswith(slave.headline)


def without_config(outcome: Outcome) -> Outcome:
    assert outcome.effect is not None
    effect = replace(outcome.effect, config=ConfigLoad("", None, {"topics.json": None}, 0, 0, 0))
    return varied(outcome, effect=effect, config=ConfigTables({}, {}, {}, {}, absent="config/"))


def test_a_copy_without_config_is_not_simply_safe() -> None:
    outcome = without_config(samples.clean())
    answer = judge(outcome)
    assert answer.headline.startswith("Safe to start once config/ is there")
    assert "config/ is not in this copy: by this copy alone a start knows no topics, groups and offsets." in answer.why
    topics = judge(varied(outcome, config=ConfigTables({}, {}, {}, {}, absent="config/topics.json")))
    assert topics.headline.startswith("Safe to start once config/topics.json is there") and topics.why[-1].endswith("no topics.")
    sound = judge(varied(outcome, config=ConfigTables({}, {}, {}, {})))
    assert sound.headline.startswith("Safe to start") and "is there" not in sound.headline


def test_a_copy_without_config_that_needs_a_repair_says_so_too() -> None:
    """An operator who forgot config/ must not learn it last."""
    step = "config/ is not in this copy: copy it from the broker, or a start knows no topics, groups and offsets."
    outcome = without_config(samples.damaged())
    (shown, *_) = shown_steps(outcome, ("/copies/s",), "plan.json")
    assert (shown.name, shown.text) == (StepName.COPY, step)
    assert shown.command == "rsync -a rocketmq@BROKER:store/config/ /copies/s/config/"
    assert step in " ".join(summary_text(samples.RUN, [outcome], "out").split())
    assert step not in " ".join(summary_text(samples.RUN, [samples.damaged()], "out").split())


def test_a_start_under_a_condition_names_it_wherever_it_is_judged() -> None:
    """The summary's next step, the table of a fleet, and the index; else a reader sees "safe to start" and nothing to do."""
    outcome = without_config(samples.clean())
    text = summary_text(samples.RUN, [outcome], "out")
    assert "  Next       1. copy: config/ is not in this copy: copy it from the broker" in text
    fleet = summary_text(samples.RUN, [outcome, samples.refused()], "out")
    assert next(line for line in fleet.splitlines() if "calm" in line).endswith("  Safe to start once config/ is there")
    page = "".join(index_html(samples.RUN, [outcome]))
    assert '>start</span><br><span class="where">first: copy</span><br><span class="where">once config/ is there</span>' in page
    assert "The store is safe to start, once config/ is there" in page


def test_settings_that_harm_what_the_broker_writes_later_are_named_beside_a_safe_start() -> None:
    outcome = varied(samples.clean(), unsafe_settings=["Set x=false: as it is, each start cuts all that came later"])
    answer = judge(outcome)
    assert answer.kind == "safe" and "but change broker.conf before new messages come" in answer.headline
    text = " ".join(summary_text(samples.RUN, [outcome], "out").split())
    assert "Next 1. condition: Set x=false: as it is, each start cuts all that came later. 2. start: Start" in text

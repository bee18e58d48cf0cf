"""Each step has words of its own, which tell all that the advice knows."""

from __future__ import annotations

from collections import Counter

import pytest

from schemas.advice import Advice, Overwritten, Step
from schemas.finding_codes import CATALOGUE, SETTING_OF_STOP
from schemas.rows import LOSS, NOTE
from store_io.wording.steps import advice_text, next_text

VALUES: dict[Step, tuple[str | int, ...]] = {
    Step.OF_CODE: ("segment_misnamed",),
    Step.RAISED_OF_CODE: ("queue_offset_gap",),
    Step.FIX_OFFSETS: (3, 2),
    Step.LOOK_AT_ORIGIN: (4711,),
    Step.NO_DOUBLE_WRITE_REPAIR: ("{beside}",),
    Step.NO_DATABASE_REPAIR: ("{folder}", "entries"),
    Step.CORRECT_LINE: ("{key}=x",),
    Step.ADD_LINE: ("{key}",),
    Step.READ_WITH_LINES: ("{folder}", "{key}=x", "other=y"),
    Step.CORRECT_NAMES: ("meant", "{named}", "other", "wrong"),
    Step.RESTORE_TABLES: ("config/{0}",),
    Step.TAKE_OVER: ("enableLmq=true",),
    Step.TAKE_FORM: ("config/a.json.{tmp}",),
    Step.MAKE_MASTER: ("brokerRole={SLAVE}",),
    Step.REMOVE_COUNTERS: ("config/{counters}",),
    Step.TAKE_OVER_OR_COPY: ("enableLmq=true", "config/a", "config/b"),
    Step.TAKE_OVER_OR_EXPORT: ("storeType=x",),
    Step.RAISE_COUNTER: ("storeType=x", "config/a.bak", "config/a", 12),
    Step.COPY_DATABASE: ("storeType=x", "config/{0}"),
    Step.REMOVE_CRASH_MARKS: ("dledger-n0/checkpoint",),
    **dict.fromkeys((Step.RESTORE_REFUSED, Step.RESTORE_REFUSED_ALONE, Step.COPY_REFUSED_BACKUP), (Overwritten.FILTERS,)),
    Step.SPLIT_SEGMENTS: (16384, 65536),
    Step.SWITCH_OFF: ("duplicationEnable",),
    **dict.fromkeys((Step.NO_REPAIR_GOES, Step.NO_REPAIR_OTHER_COPY, Step.NO_REPAIR_NAME_DONOR), ("no {end}",)),
    Step.COPY_LOG: ("/data/{0}",),
    Step.COPY_CONFIG: ("{absent}/", "topics"),
    Step.WROTE: ("5.1.0 to 5.3.4",),
    Step.SET_LINE: ("Set {key}=x",),
    **dict.fromkeys((Step.EMPTY_THIS, Step.EMPTY_OTHER), ("/copies/{0}",)),
    **dict.fromkeys(
        (
            Step.MASTER_INSTEAD, Step.MASTER_INSTEAD_OF_REFUSED, Step.SAVE_FROM, Step.COMPARE_DIVERGED, Step.COMPARE_FORMS,
            Step.ONLY_IF_LATER_ONE_IS_GONE,
        ),
        ("/copies/{b}", 12),
    ),
    Step.SEND_ONLY_OTHERS: ("/copies/{a}", 12, "/copies/{b}"),
    Step.TAKE_TABLE: ("config/{0}", "/copies/{b}", 2, "topic"),
    Step.PUT_TOGETHER: ("all {topics}", "config/a", "/copies/{b}", "config/c", "/copies/d"),
    **dict.fromkeys(
        (
            Step.START, Step.START_JUDGED, Step.START_MENDING, Step.START_NEW_STORE, Step.START_COPY, Step.START_CHANGED,
            Step.START_OTHER, Step.START_DAMAGED, Step.START_ONCE, Step.START_ALL_BUT,
        ),
        ("5.3.3",),
    ),
    Step.CHECK_LOG_END: (4711,),
    Step.CREATE_TOPIC: ("{topic}", 8, 16, "config/{t} of /copies/b", "+queue.type=BatchCQ"),
    Step.CREATE_MORE: (12, "findings.jsonl"),
    Step.SET_GROUP: ("{group}",),
    Step.SET_MORE: (12,),
    Step.SEND_AGAIN: (12, 1),
    Step.SEND_GIVEN_UP: (12, 1),
    Step.SEND_TIMERS: (12,),
    Step.STOP_USER: ("{A} broker uses it.",),
    Step.MORE_STEPS: (12,),
    Step.KEEP_SEGMENTS: ("2026-11-28", 3, 5, 12, 6, "04", "2026-11-29", "Asia/Dhaka", 72, 200, 1),
    Step.LET_GROUPS_READ: ("{group}", "{topic}", 4, 12, 2),
    Step.START_BEFORE: (12, "2026-11-28", "2026-11-27"),
    Step.DECIDE_HALF_MESSAGES: (12,),
    Step.LEVELS_STAND_STILL: ("3, 4",),
}  # fmt: skip
SILENT = {Step.OF_CODE, Step.RAISED_OF_CODE, Step.RESTORE_REFUSED, Step.RESTORE_REFUSED_ALONE, Step.COPY_REFUSED_BACKUP}


@pytest.mark.parametrize("step", Step)
def test_every_step_has_a_sentence_that_tells_every_value(step: Step) -> None:
    text = advice_text(Advice(step, VALUES.get(step, ())))
    assert text[0] == text[0].upper() and text.endswith(".") and "\n" not in text
    assert step in SILENT or all(str(value) in text for value in VALUES.get(step, ()))


def test_no_two_steps_have_the_same_words() -> None:
    """Steps are compared and never sentences, so that one sentence must not be two steps."""
    steps = {Advice(step, VALUES.get(step, ())) for step in Step}
    steps |= {row.next_at(severity) for row in CATALOGUE.values() for severity in (NOTE, LOSS)}
    assert [text for text, count in Counter(map(advice_text, steps)).items() if count > 1] == []


@pytest.mark.parametrize("tables", Overwritten)
def test_a_refused_start_names_the_tables_that_it_overwrites(tables: Overwritten) -> None:
    others = {advice_text(Advice(Step.RESTORE_REFUSED, (other,))) for other in Overwritten if other != tables}
    assert advice_text(Advice(Step.RESTORE_REFUSED, (tables,))) not in others


def test_what_is_sent_again_is_at_least_so_much_only_if_there_may_be_more() -> None:
    assert "at least 12 messages" in advice_text(Advice(Step.SEND_AGAIN, (12, 1)))
    assert "at least" not in advice_text(Advice(Step.SEND_AGAIN, (12, 0)))


def test_a_start_without_a_last_moment_names_none() -> None:
    values = (12, "2026-11-28", "")
    assert "Start before" not in advice_text(Advice(Step.START_BEFORE, values))
    waits = advice_text(Advice(Step.START_BEFORE, (0, "2026-11-28T15:00:00Z", "2026-11-29T21:46:54Z")))
    assert waits.startswith("Start before 2026-11-29 21:46 UTC: from then on a start never delivers timer messages that wait")


def test_a_disk_that_is_not_too_full_takes_no_segment() -> None:
    assert "disk" not in advice_text(Advice(Step.KEEP_SEGMENTS, ("2026-11-28", 1, 0, 0, 0, "04", "", "UTC", 72, 200, 0)))


def test_a_table_is_taken_for_its_entries_or_for_its_greater_offsets() -> None:
    assert "lacks 1 topic of those" in advice_text(Advice(Step.TAKE_TABLE, ("config/topics.json", "/b", 1, "topic")))
    assert "greater offsets" in advice_text(Advice(Step.TAKE_TABLE, ("config/consumerOffset.json", "/b", 0, "offset")))


def test_a_step_without_another_setting_names_none() -> None:
    assert "broker ran with" not in advice_text(Advice(Step.COPY_DATABASE, ("", "config/topics")))
    assert "copy " not in advice_text(Advice(Step.RAISE_COUNTER, ("", "", "config/a", 12)))


def test_which_settings_cut_have_words() -> None:
    assert len({advice_text(Advice(Step.SWITCH_OFF, (setting,))) for setting in SETTING_OF_STOP.values()}) == len(SETTING_OF_STOP)
    assert next_text(None) == ""

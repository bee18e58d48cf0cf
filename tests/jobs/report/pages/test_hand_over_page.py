"""The words of a hand-over, and its page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.installation import ENTRY
from jobs.report.pages.hand_over_page import HandOver, NewDisk, hand_over_html, hand_over_text, headline, parts, unsaved_lines
from schemas.repair import FormLeft, GivenUp, PositionBeyond, TimersMade
from tests.support.handmade import handed
from tests.support.handmade.samples import HOSTILE
from tests.support.texts.golden import check
from tests.support.texts.pages import Page, without_style


def told(own: HandOver) -> str:
    """What the terminal and the page say together."""
    return hand_over_text(own) + Page("".join(hand_over_html(own))).text


def test_a_store_without_a_loss_is_green_and_says_so() -> None:
    own = handed.saved()
    assert (
        own.style == "safe" and headline(own) == "The new store is consistent and holds 1,700 messages, all that the copy shows"
    )
    assert unsaved_lines(own) == ["Nothing: every message that the copy holds or shows is in the new store."]
    text = told(own)
    for sentence in (
        "[ ] Put /new/broker-a in the place of storePathRootDir, by broker.conf /data/store: the same path",
        "put /new/broker-a/commitlog in the place of /disk2/log",
        "[ ] Start RocketMQ 5.3.3, no other release",
        "mappedFileSizeCommitLog=131072 (broker.conf)",
        "TopicA, queue 0: 0 to 300",
        f"{ENTRY} audit /new/broker-a --release 5.3.3 --broker-conf /conf/broker.conf --out /new/broker-a.audit",
        "before a start, go through /new/broker-a.handover.html, box by box",
    ):
        assert sentence in text
    assert replace(own, assumed=["it"]).style == "care"
    lossy = handed.lossy().report
    for more in (
        {"kept": lossy.kept},
        {"moved": lossy.moved},
        {"topics_unknown": ("T",)},
        {"healed": lossy.healed},
        {"given_up": GivenUp(signs=("x",))},
    ):
        assert replace(own, report=handed.report(**more)).style == "care"


def test_all_that_is_lost_is_named_or_counted_and_no_name_acts_on_the_terminal() -> None:
    own = handed.lossy()
    text = told(own)
    holds = "The new store is consistent but for config/topics.json and holds 1,691 messages (1 of them healed, 1 in no queue)"
    assert headline(own) == f"{holds}; 133 messages could not be saved"
    for sentence in (
        "No release was named.",
        "121 messages: the copy shows that they were there, and does not hold them.",
        "9 valid messages of the copy that the new log leaves out",
        "3 messages were given up by the repair that made the copy.",
        "Only counted, as nothing shows where they were: 1 message of these.",
        "All names: /new/broker-a.unsaved.jsonl",
        "offset 7, physical offset 507, key hash 7, 1029605767 (missing)",
        "and 109 more messages, in /new/broker-a.unsaved.jsonl",
        "Set back to the new ends of their queues: 1 offset.",
        "1 placeholder record of topic STORE_AUDIT_BRIDGE",
        "PHYSICALOFFSET: 1e becomes 0e",
        "Donor /donor: 3 ranges were taken",
        "and 980 more queues: plan.json of the audit before the start lists all.",
        "Resend.java --namesrv HOST:9876 --dry-run /new/broker-a.resend.jsonl",
        "Not copied, as they are no files: fifo",
    ):
        assert sentence in text, sentence
    assert "\x1b" not in text and "\u202e" not in text
    assert {part.key for part in parts(own) if part.to_do} == {"places", "settings", "start", "checks", "again"}


def test_what_cannot_be_sent_again_is_not_promised() -> None:
    own = replace(handed.saved(), report=handed.report(given_up=GivenUp(2, 2)))
    (again,) = (part for part in parts(own) if part.key == "again")
    assert not again.to_do and "Nothing from this copy" in again.lines[0]
    said = unsaved_lines(replace(own, report=handed.report(given_up=GivenUp(1, 1))))[0]
    assert said.startswith("1 message: the copy shows that it was there, and does not hold it. Look for it in another copy")
    own = replace(own, report=handed.report(given_up=GivenUp(signs=("index_entry_beyond_end",))))
    assert "how many is not known" in headline(own) and "nothing says how many" in unsaved_lines(own)[0]
    ahead = replace(own, report=handed.report(offsets=(PositionBeyond("group", "group g is ahead"),)))
    assert "groups would skip new messages" in told(ahead)


LIMITS = (
    "Above 75 % this broker deletes segments older than 72 hours at once, above 85 % those of any age, all but the last;"
    " above 90 % it takes no message."
)
FULL = "With the new store on it, the disk of /new/broker-a is"


@pytest.mark.parametrize(
    ("disk", "style", "said"),
    [
        (handed.disk(None), "safe", f"Look at how full the disk of the new store will be. {LIMITS} Keep the damaged copy"),
        (handed.disk(75.0), "safe", f"{FULL} 75 % full. {LIMITS} Keep it at 75 % or less, with what is written"),
        (
            handed.disk(75.01, 20.5),
            "care",
            f"{FULL} 75.01 % full. The damaged copy takes 20.5 % of it. {LIMITS} Move the damaged copy to another disk before the"
            " start: that leaves 54.51 %.",
        ),
        (
            handed.disk(87, 2),
            "care",
            f"{FULL} 87 % full. The damaged copy takes 2 % of it. {LIMITS} Move the damaged copy to another disk before the"
            " start: that leaves 85 %. Make room before the start, to 75 % or less.",
        ),
        (handed.disk(87), "care", f"{FULL} 87 % full. {LIMITS} Make room before the start, to 75 % or less."),
        (
            handed.disk(88, diskMaxUsedSpaceRatio=95),
            "care",
            "Above 85 % this broker deletes segments of any age at once, all but the last; above 90 %",
        ),
        (handed.disk(84, diskMaxUsedSpaceRatio=95), "safe", "Keep it at 85 % or less"),
        (
            handed.disk(88, release="4.9.8", diskMaxUsedSpaceRatio=95, fileReservedTime=48),
            "care",
            "Above 95 % this broker deletes segments older than 48 hours at once, above 85 % those of any age at deleteWhen, all"
            " but the last; above 90 % it takes no message. Make room before the start, to 85 % or less.",
        ),
        (
            handed.disk(88, cleanFileForciblyEnable=False),
            "care",
            "Above 75 % this broker deletes segments older than 72 hours at once; above 90 % it takes no message. Make room",
        ),
    ],
)
def test_the_disk_is_said_first_by_this_brokers_limits(disk: NewDisk, style: str, said: str) -> None:
    own = replace(handed.saved(), disk=disk)
    (places,) = (part for part in parts(own) if part.key == "places")
    assert said in places.lines[0] and own.style == style


def test_what_the_broker_does_by_itself_is_seen_to_before_the_start() -> None:
    own = replace(handed.saved(), conditions=["If the broker starts, it deletes 3 segments."])
    (start,) = (part for part in parts(own) if part.key == "start")
    assert start.lines[1] == own.conditions[0] and start.lines[2].startswith("Start RocketMQ 5.3.3")
    assert own.style == "care" and handed.saved().style == "safe"


def test_a_setting_that_harms_new_messages_is_to_be_changed() -> None:
    own = replace(handed.saved(), unsafe=["Set x=false: as it is, it harms"])
    text = told(own)
    assert "[ ] Set x=false: as it is, it harms." in text and "[ ] For all else use the same broker.conf." in text
    assert own.style == "care" and "[ ] Use the same broker.conf." in told(handed.saved())


@pytest.mark.parametrize(
    ("setting", "told_so"), [(("enableControllerMode", "true"), True), (("enableControllerMode", "false"), False)]
)
def test_under_a_new_controller_the_identity_must_go(setting: tuple[str, str], told_so: bool) -> None:
    own = replace(handed.saved(), settings=[(*setting, "broker.conf")])
    assert ("[ ] If the broker joins a new controller" in told(own)) is told_so
    assert "new controller" not in told(replace(handed.saved(), settings=[]))


def test_delivered_copies_of_timer_messages_are_not_to_come_twice() -> None:
    again = replace(handed.saved(), files=handed.FILES)
    assert "TIMER_DEQUEUE_MS" not in told(again)
    timers = TimersMade(True, 3, 0, "timers: 3 messages wait")
    assert "TIMER_DEQUEUE_MS" in told(replace(again, report=handed.report(timers=timers)))
    assert "TIMER_DEQUEUE_MS" not in told(replace(handed.saved(), report=handed.report(timers=timers)))


def test_tables_that_begin_empty_or_are_left_out_are_said_first() -> None:
    form = FormLeft("config/rdb/", 1_700_000_000_000, "file", ("T@g, 0: 5",), 3)
    row = handed.config_row(emptied=True, lost=3, not_kept=(form,))
    own = replace(handed.saved(), report=handed.report(config=(row,), config_written=True))
    assert own.style == "stop" and headline(own).endswith("; tables begin empty: config/consumerOffset.json, 3 entries lost")
    text = told(own)
    assert "config/consumerOffset.json begins empty, by --empty-config: 3 offsets lost" in text
    assert "3 entries of config/rdb/ (last changed 2023-11-14 22:13:20 UTC), not in the new config/consumerOffset.json" in text
    assert "config/rdb/: T@g, 0: 5" in text and "and 2 more entries: /new/broker-a.repair.json" in text
    page = "".join(hand_over_html(own))
    assert page.count("c-stop") > "".join(hand_over_html(handed.saved())).count("c-stop") and "offsets lost" in page
    left = replace(own, report=handed.report(config=(handed.config_row(left_out=True),), config_written=True))
    assert left.style == "care" and headline(left).startswith(
        "The new store is consistent but for config/consumerOffset.json and holds"
    )
    assert "this copy's file could not be read" in told(left)
    gone = replace(left, report=replace(left.report, config_in_copy=False))
    assert "config/ is not in this copy" in told(gone) and "could not be read" not in told(gone)
    waits = replace(gone, report=replace(gone.report, config_written=False))
    assert headline(waits).startswith("The new store is consistent but for config/ and holds")
    kept = handed.config_row(taken_from=("config/consumerOffset.json.bak",), not_kept=(form,))
    assert replace(own, report=handed.report(config=(kept,), config_written=True)).style == "care"


def test_the_boxes_come_in_the_order_of_the_work() -> None:
    own = replace(
        handed.saved(),
        report=handed.report(topics_unknown=("T",), config=(handed.config_row(),)),
        with_config="repair x --fix-config",
    )
    order = [part.key for part in parts(own) if part.to_do]
    assert order.index("settings") < order.index("start") < order.index("checks")
    (start,) = (part for part in parts(own) if part.key == "start")
    assert start.lines[0].startswith("Audit") and start.commands and start.lines[1].startswith("Start RocketMQ")
    assert "Start it without traffic" in start.lines[1] and start.lines[2].endswith("before clients come: T")
    (places,) = (part for part in parts(own) if part.key == "places")
    assert places.commands == ("repair x --fix-config",) and "the command below makes such a store" in " ".join(places.lines)
    page = Page("".join(hand_over_html(own)))
    boxes = sum(len(part.lines) for part in parts(own) if part.to_do)
    assert page.all("input") == [{"type": "checkbox"}] * boxes == [{"type": "checkbox"}] * hand_over_text(own).count("[ ] ")
    assert "config/topics.json" in headline(own)


def page_of(own: HandOver) -> Page:
    return Page("".join(hand_over_html(own)))


def test_the_page_is_what_was_looked_at() -> None:
    own = handed.lossy()
    page = page_of(replace(own, named=[*own.named[:3], own.named[-1]], ends=own.ends[:3], queues=3))
    assert page.problems() == []
    check("hand-over.html", without_style(page.source))


def test_a_page_of_any_names_is_inert_and_bounded() -> None:
    for own in (handed.saved(), handed.lossy()):
        page = page_of(own)
        assert page.problems() == [] and "<script>alert" not in page.source and "\u202e" not in page.source
        assert len(page.source) < 200_000
    many = handed.named(1, topic="t" * 255)
    page = page_of(replace(handed.lossy(), named=[many] * 100_000, named_count=5_000_000, target=f"/new/{HOSTILE}"))
    assert len(page.source) < 200_000 and "4,999,900 more messages are not shown here" in page.text


def test_ports_and_paths_are_those_of_this_broker_conf() -> None:
    own = replace(handed.saved(), port="21120", name_server="10.0.0.7:21100")
    own = replace(own, places=(("storePathRootDir", "/data/store"), ("storePathCommitLog", "/data//store/commitlog/")))
    text = told(own)
    assert "mqadmin brokerStatus -b BROKER:21120 " in text and "elsewhere" not in text
    lossy = replace(handed.lossy(), name_server="10.0.0.7:21100;10.0.0.8:21100")
    assert "--namesrv '10.0.0.7:21100;10.0.0.8:21100' --dry-run" in told(lossy) and "in the place of HOST" not in told(lossy)


def test_a_good_start_passes_what_is_to_be_checked() -> None:
    """A clean start writes that line with equal numbers; a broker with timers writes to its log at once."""
    text = told(handed.saved())
    assert (
        "must show no line" not in text and "must show no less than 9000" in text and "before the first new message" not in text
    )
    assert "Only if its first number is above the second was something cut" in text
    assert "consumerProgress must show no group beyond the ends" in text
    ahead = handed.report(offsets=(PositionBeyond("group", "G is at 9"),))
    back_again = replace(ahead, offsets_set_back=("config/c.json",))
    left, back = (told(replace(handed.saved(), report=each)) for each in (ahead, back_again))
    assert "consumerProgress shows no other groups beyond these ends" in left and "must show no group beyond the ends" in back

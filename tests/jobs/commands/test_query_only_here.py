"""query --only-here: what one copy alone holds, each message once, in the form in which it is sent again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs import entry
from tests.answers.recipes import make_answer_store
from tests.answers.truth import truth_of
from tests.support import damage
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder, field_position

SIZES = Sizes(segment=4096, queue_file=400)
HOSTILE = ["$(touch x)`id`;'\"", "-rf", "../../x", "‮txet", "\x1b[31mred", "a,b\\"]
DELAY = "SCHEDULE_TOPIC_XXXX"
WAITS = (("REAL_TOPIC", "T"), ("REAL_QID", "0"), ("DELAY", "3"))


def ask(copy: Path, other: Path, conf: str, release: str, *more: str) -> int:
    file = copy.parent / f"{copy.name}.conf"
    file.write_text(conf, encoding="utf-8")
    return entry.main(["query", str(copy), "--release", release, "--broker-conf", str(file), "--only-here", str(other), *more])


def lines(capsys: pytest.CaptureFixture[str], copy: Store, other: Store, *more: str) -> list[dict[str, Any]]:
    assert ask(copy.root, other.root, copy.broker_conf, copy.release, "--format", "resend", *more) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def keys(rows: list[dict[str, Any]]) -> list[str]:
    return [row["unique_key"] for row in rows]


def pair(root: Path, common: int, mine: list[Message], theirs: list[Message], topics: tuple[str, ...] = ("T",)) -> list[Store]:
    """Two copies with `common` messages of one history, then each with its own."""
    made = []
    for name, own in (("a", mine), ("b", theirs)):
        builder = StoreBuilder("5.3.3", SIZES)
        for n in range(common):
            builder.put(Message(topics[n % len(topics)], n % 2, b"body %d" % n, uniq=f"C{n:03d}"))
        builder.clock += 1000 if name == "b" else 0
        for message in own:
            builder.put(message)
        made.append(builder.write(root / name))
    return made


def own(label: str, count: int, topic: str = "T") -> list[Message]:
    return [Message(topic, 0, f"{label} {n}".encode() * 3, uniq=f"{label}{n:03d}") for n in range(count)]


@pytest.mark.parametrize(("copy", "other", "label", "count"), [("a", "b", "a", 60), ("b", "a", "ax", 30)])
def test_of_a_diverged_pair_each_lists_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], copy: str, other: str, label: str, count: int
) -> None:
    make_answer_store("pair-diverged", tmp_path / "copies")
    truth = truth_of("pair-diverged")
    conf = next(one.broker_conf for one in truth.copies if one.name == copy)
    out = tmp_path / "send.jsonl"
    folder = tmp_path / "copies"
    assert ask(folder / copy, folder / other, conf, truth.release, "--format", "resend", "--out", str(out)) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert keys(rows) == [f"{label}{n:031d}" for n in range(300, 300 + count)]
    assert all(row["why_not"] is None and row["body_base64"] for row in rows)
    assert f"{folder / other} lacks {count} messages of this copy" in capsys.readouterr().err
    assert ask(folder / copy, folder / other, conf, truth.release, "--topic", "invoices", "--format", "jsonl") == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["unique_key"] for row in shown] == [row["unique_key"] for row in rows if row["topic"] == "invoices"]
    assert "properties" in shown[0] and list(shown[0])[:1] == ["file"]


def test_of_copies_with_one_history_the_longer_one_lists_the_end_and_the_other_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long, short = pair(tmp_path, 40, own("A", 25), [])
    assert keys(lines(capsys, long, short)) == [f"A{n:03d}" for n in range(25)]
    assert keys(lines(capsys, long, short, "--limit", "3")) == ["A000", "A001", "A002"]
    assert lines(capsys, short, long) == []
    assert ask(short.root, long.root, short.broker_conf, "5.3.3") == 0
    said = capsys.readouterr().err
    assert "holds every message of this copy at its place" in said and "no message is found that only this copy holds" in said


def test_equal_copies_have_nothing_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = pair(tmp_path, 40, [], [])
    assert lines(capsys, one, other) == lines(capsys, other, one) == []


def test_a_message_that_the_other_copy_has_elsewhere_is_not_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, theirs = own("A", 9), own("B", 7)
    theirs[3:3] = [mine[4], mine[2]]  # their producer has sent them again, to the other broker
    theirs += [Message("T", 0, b"another body", uniq="A006"), Message("other", 0, mine[7].body, uniq="A007")]
    a, b = pair(tmp_path, 30, mine, theirs)
    assert keys(lines(capsys, a, b)) == ["A000", "A001", "A003", "A005", "A006", "A007", "A008"]
    assert ask(a.root, b.root, a.broker_conf, "5.3.3") == 0
    assert "2 messages of these not listed" in capsys.readouterr().err
    assert "A004" not in keys(lines(capsys, b, a)) and len(lines(capsys, b, a)) == 9


def test_no_message_is_listed_twice_and_those_without_a_key_all_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twice = Message("T", 1, b"twice", uniq="TWICE")
    nameless = Message("T", 0, b"nameless")
    common = Message("T", 0, b"body 4", uniq="C004")  # sent again by its producer: both copies hold it
    a, b = pair(tmp_path, 30, [twice, nameless, common, twice, nameless], [])
    assert keys(lines(capsys, a, b)) == ["TWICE", None, None]


def test_a_message_that_waits_is_told_from_the_one_that_was_delivered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def waiting(key: str) -> Message:
        return Message(DELAY, 2, f"{key} body".encode(), uniq=key, properties=WAITS)

    def delivered(key: str) -> Message:
        return Message("T", 0, f"{key} body".encode(), uniq=key)

    mine = [waiting("W1"), delivered("W1"), waiting("W2"), delivered("W3"), waiting("W4")]
    theirs = [*own("B", 2), delivered("W2"), waiting("W3"), waiting("W4")]
    a, b = pair(tmp_path, 10, mine, theirs)
    rows = lines(capsys, a, b)
    assert [(row["unique_key"], row["topic"], row["stored_topic"]) for row in rows] == [("W1", "T", DELAY), ("W3", "T", "T")]


def test_half_messages_stay_in_the_list_and_hide_no_committed_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waits = ("REAL_TOPIC", "T"), ("REAL_QID", "0"), ("TRAN_MSG", "true")
    half = Message("RMQ_SYS_TRANS_HALF_TOPIC", 0, b"body", uniq="H", properties=waits)
    committed = Message("T", 0, b"body", uniq="H")
    a, b = pair(tmp_path, 10, [half, committed], [*own("B", 1), half])
    rows = lines(capsys, a, b)
    assert [(row["topic"], row["why_not"] is None) for row in rows] == [("T", False), ("T", True)]


def test_damage_of_the_other_copy_is_a_message_that_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = pair(tmp_path, 60, [], [])
    for number in (5, 33):
        record = b.records[number]
        damage.invert_byte(b.segment_of(record), b.position_of(record) + field_position(record, "body")[0])
    assert keys(lines(capsys, a, b)) == ["C005", "C033"]
    assert lines(capsys, b, a) == []


def test_a_message_in_another_form_is_named_and_not_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = pair(tmp_path, 60, [], [])
    record = b.records[5]
    damage.invert_byte(b.segment_of(record), b.position_of(record) + sum(field_position(record, "props")) - 1)
    assert lines(capsys, a, b) == []
    assert ask(a.root, b.root, a.broker_conf, "5.3.3") == 0
    assert "1 message not listed, which it holds in another form" in capsys.readouterr().err


def test_messages_before_the_begin_of_the_other_log_are_named_and_not_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair(tmp_path, 60, [], [])
    sorted((b.root / "commitlog").iterdir())[0].unlink()
    assert lines(capsys, a, b) == []
    assert ask(a.root, b.root, a.broker_conf, "5.3.3") == 0
    assert "older messages of this copy not listed: from before the begin of its log" in capsys.readouterr().err


def test_hostile_topics_are_listed_and_never_steer_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = [message for n, topic in enumerate(HOSTILE) for message in own(f"{n}", 1, topic)]
    a, b = pair(tmp_path, 20, mine, own("B", 3))
    assert [row["topic"] for row in lines(capsys, a, b)] == HOSTILE
    assert ask(a.root, b.root, a.broker_conf, "5.3.3") == 0
    out, _ = capsys.readouterr()
    assert len(out.splitlines()) == 1 + len(HOSTILE) and not {"\x1b", "‮"} & set(out)


@pytest.mark.parametrize("how", ["link", "gone"])
def test_what_could_not_be_compared_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    a, b = pair(tmp_path, 60, [], [])
    segment = sorted((b.root / "commitlog").iterdir())[1]
    segment.unlink()
    segment.symlink_to("/proc/1/environ" if how == "link" else tmp_path / "gone")
    assert ask(a.root, b.root, a.broker_conf, "5.3.3", "--format", "resend") == 3
    out, err = capsys.readouterr()
    assert out == "" and "what only one copy holds is not known" in err and segment.name in err
    shutil.rmtree(b.root)
    (b.root).mkdir()
    assert ask(a.root, b.root, a.broker_conf, "5.3.3", "--format", "resend") == 3
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("words", [["--lost"], ["--view", "broker"], ["--last", "3"]])
def test_what_cannot_be_combined(tmp_path: Path, words: list[str]) -> None:
    assert entry.main(["query", str(tmp_path), "--only-here", str(tmp_path / "b"), *words]) == 2


def test_a_copy_is_not_compared_with_itself(tmp_path: Path) -> None:
    (a, _) = pair(tmp_path, 5, [], [])
    (tmp_path / "link").symlink_to(a.root)
    assert ask(a.root, tmp_path / "link", a.broker_conf, "5.3.3") == 2
    assert entry.main(["query", str(a.root), "--only-here", ""]) == 2

"""One line rescues a store of each kind, and the real release starts on what it made: the log ends where the hand-over page says,
queues have the minimum and maximum that the page lists, every message of the copy is served as it was but those that the page
names as unsaved, new messages get the next offsets, and a further start changes nothing."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from jobs import entry
from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.kinds import Seen, Session
from tests.broker_truth.harness.real_broker import Jvm, Put
from tests.broker_truth.harness.repairs import Key, expected, served, valid_records
from tests.support.damage import invert_byte, zero_range
from tests.support.stores import corpus_tools
from tests.support.stores.corpus_tools import CORPUS, Case
from tests.support.texts.json_schemas import faults

pytestmark = pytest.mark.broker
END = re.compile(r"^        (.+), queue (\d+): (-?[\d,]+) to (-?[\d,]+)$", re.MULTILINE)
NAMED = "[ ] Start RocketMQ"
OWN = re.compile(r"(?!SCHEDULE_|RMQ_|TRANS_|TBW102|rmq_sys_|%).{1,127}$")  # topics of clients

Ends = Mapping[tuple[str, int], tuple[int, int]]  # (minimum, maximum) by (topic, queue id)
EPOCHS = itertools.count(9)


def plain(session: Session, puts: Sequence[Put], _: Iterable[tuple[str, int]]) -> Seen:
    return session.run(puts)


def as_leader(session: Session, puts: Sequence[Put], _: Iterable[tuple[str, int]]) -> Seen:
    return session.run_dledger(puts)


def as_master(session: Session, puts: Sequence[Put], _: Iterable[tuple[str, int]]) -> Seen:
    return session.run_controlled(next(EPOCHS), puts)


def keyed(session: Session, puts: Sequence[Put], queues: Iterable[tuple[str, int]]) -> Seen:
    """A broker makes its queues in RocksDB when somebody asks for them."""
    with Jvm(session.release) as jvm, jvm.broker(session.root, session.settings) as broker:
        if not broker.load():
            return Seen(False)
        end = broker.java.getMaxPhyOffset()
        broker.start()
        for topic, queue_id in queues:
            broker.java.getConsumeQueue(topic, queue_id)
        answers = broker.put(puts)
        broker.catch_up()
        seen = Seen(True, end, answers, broker.serve(keys=False))
        broker.shutdown()
        return seen


def unharmed(store: Path) -> None:
    """The copy as its broker left it."""


def hole(store: Path) -> None:
    """Zeros over more than a message, inside of the log."""
    path = sorted((store / "commitlog").iterdir())[1]
    data = path.read_bytes()
    middle = len(data.rstrip(b"\0")) // 2
    zero_range(path, middle, middle + 700)


def bit(store: Path) -> None:
    """One bit of a body, in the middle of the log."""
    records = [(offset, record) for offset, (record, _) in sorted(valid_records(store).items()) if len(record.body) > 50]
    offset, record = records[len(records) // 2]
    path = max(path for path in (store / "commitlog").iterdir() if int(path.name) <= offset)
    invert_byte(path, path.read_bytes().index(record.body, offset - int(path.name)) + 20, 4)


@dataclass(frozen=True)
class Kind:
    """name: of a case, its folder in the corpus.  damage: what is done to it.  donor: as it was before that, it is one.
    healed: records that --heal makes whole.  changed: a line of broker.conf that the page wants before new messages come."""

    name: str
    damage: Callable[[Path], None]
    start: Callable[[Session, Sequence[Put], Iterable[tuple[str, int]]], Seen] = plain
    donor: bool = False
    healed: int = 0
    changed: str = ""


KINDS = {
    "a torn message": Kind("g14-533-torn-old-seen", unharmed),
    "zeros at the end": Kind("g11-533-zero-tail", unharmed),
    "a wrong magic": Kind("g60-533-first-magic", unharmed, healed=1),
    "a forced checksum": Kind("g67-540-force-crc", unharmed, changed="forceVerifyPropCRC=false"),
    "timers": Kind("g5x-533-broker-live", hole),
    "queues in RocksDB": Kind("kinds/rocksdb/g95-550-rdb-ahead-crash", unharmed, keyed),
    "DLedger": Kind("g103-514-dledger-tail", unharmed, as_leader),
    "controller mode": Kind("g112-550-controller-epoch-crc", unharmed, as_master),
    "with a donor": Kind("g5x-533-broker-live", hole, donor=True),
    "queues in RocksDB, with a donor": Kind("kinds/rocksdb/g90-533-rdb-clean", hole, keyed, donor=True),
    "an old release, after retention": Kind("g25-480-first-gone-crash", hole),
    "a bit that is mended": Kind("g29-498-cq-wrong", bit, healed=1),
}


def typed(case: Case, root: Path, *words: str) -> int:
    conf = root.parent / "broker.conf"
    conf.write_text(case.broker_conf, "utf-8")
    return entry.main(["rescue", str(root), "--release", case.release, "--broker-conf", str(conf), *words])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_a_rescued_store_starts_as_its_page_says(kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if kind.start in (as_leader, as_master) and (reason := own_network.allowed()):
        pytest.skip(reason)
    case = Case(CORPUS / kind.name)
    root, more = case.unpack(tmp_path), []
    whole = expected(valid_records(root))
    if kind.donor:
        shutil.copytree(root, tmp_path / "donor")
        more = ["--donor", str(tmp_path / "donor")]
    kind.damage(root)
    new = tmp_path / "new"
    assert typed(case, root, "--to", str(new), "--yes", *more) == 0
    said = capsys.readouterr().out
    report = json.loads((tmp_path / "new.repair.json").read_text("utf-8"))
    assert (tmp_path / "new.handover.html").exists() and NAMED in said
    shown = {(topic, int(queue)): (number(low), number(high)) for topic, queue, low, high in END.findall(said)}
    gone = unsaved(tmp_path / "new.unsaved.jsonl")
    kept = {key: data for key, data in expected(valid_records(root)).items() if key[:3] not in gone}
    queues = {*shown, *(key[:2] for key in kept)}
    session = Session(case.release, new, case.broker_conf)

    first = kind.start(session, (), queues)
    assert first.loaded
    if kind.start in (plain, keyed):
        assert first.end == report["log_end"]
    own = ends(first)
    compared = shown.keys() & own.keys()
    assert compared and {key: own[key] for key in compared} == {key: shown[key] for key in compared}
    got = read_back(first, report)
    assert kept.items() <= got.items() and not {key[:3] for key in got} & gone
    if kind.donor:
        assert got == whole and report["donor"]["taken"] and not report["donor"]["not_taken"]
    else:
        assert len(got) - len(kept) == kind.healed
    if kind.damage is not unharmed:  # then all that was written is known
        assert got.items() <= whole.items()

    puts = [
        Put(topic, b"new", queue, keys="k", uniq=f"NEW-{topic}-{queue}") for topic, queue in sorted(shown) if OWN.match(topic)
    ]
    if kind.changed:
        assert f"[ ] Set {kind.changed}" in said
        session = replace(session, settings=f"{case.broker_conf}\n{kind.changed}\n")
    second = kind.start(session, puts, queues)
    assert puts and [answer.queue_offset for answer in second.answers] == [shown[put.topic, put.queue_id][1] for put in puts]
    then = read_back(second, report)
    assert got.items() <= then.items() and len(then) == len(got) + len(puts)
    third = kind.start(session, (), queues)
    assert read_back(third, report) == then and ends(third) == ends(second)


def ends(seen: Seen) -> Ends:
    assert seen.served is not None
    return {key: (queue.min_offset, queue.max_offset) for key, queue in seen.served.queues.items()}


def read_back(seen: Seen, report: Mapping[str, Any]) -> dict[Key, bytes]:
    """What was served, but for the placeholders that the repair wrote."""
    assert seen.served is not None
    bridges = {bridge["phy_offset"] for bridge in report["bridges"]}
    return {key: data for key, data in served(seen.served).items() if key[3] not in bridges}


def unsaved(path: Path) -> set[tuple[str, int, int]]:
    """(topic, queue id, queue offset) of each message that the file names; each line is as its schema says."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    assert [fault for line in lines for fault in faults("unsaved", line)] == []
    rows = list(map(json.loads, lines))
    return {(row["topic"], row["queue_id"], row["queue_offset"] + n) for row in rows for n in range(row["messages"])}


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("g32-480-commitlog-empty", 3, "Not rescued: Nothing to lose is left here"),
        ("g04-533-clean-all", 0, "Nothing to repair"),
        ("kinds/rocksdb/g90-533-rdb-clean", 0, "Nothing to repair"),
    ],
)
def test_stores_without_a_rescue(name: str, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = Case(CORPUS / name)
    assert typed(case, case.unpack(tmp_path), "--to", str(tmp_path / "new"), "--yes") == code
    assert words in capsys.readouterr().out and not (tmp_path / "new").exists()


def test_no_donor_is_promised_where_none_helps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = Case(CORPUS / "g106-540-dledger-mixed")
    root = case.unpack(tmp_path)
    zero_range(next(path for path in sorted((root / "commitlog").iterdir())), 1000, 1700)
    assert typed(case, root, "--to", str(tmp_path / "new"), "--yes") == 3
    said = capsys.readouterr().err
    assert "no repair goes: " in said and "look for another copy of this broker" in said and "--donor" not in said


def test_a_running_broker_s_directory_is_not_rescued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = Case(CORPUS / "g41-533-fresh")
    root = case.unpack(tmp_path)
    with Jvm(case.release) as jvm, jvm.broker(root, case.broker_conf) as broker:
        broker.begin()
        assert typed(case, root, "--to", str(tmp_path / "new"), "--yes") == 3
    assert "holds the file lock in it, so a broker runs on this directory" in capsys.readouterr().err


def test_every_case_of_the_table_is_in_the_corpus() -> None:
    names: Sequence[str] = [kind.name for kind in KINDS.values() if "/" not in kind.name]
    assert set(names) <= {case.name for case in corpus_tools.cases()}

"""One line rescues a store of each kind, and the real release starts on what it made: the log ends where the hand-over page says,
queues have the minimum and maximum that the page lists, and no message is served that the page names as unsaved."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs import cli
from tests.broker_truth import own_network
from tests.broker_truth.kinds import Seen, Session
from tests.broker_truth.real_broker import Jvm
from tests.support import corpus_tools
from tests.support.corpus_tools import CORPUS, Case
from tests.support.damage import zero_range

pytestmark = pytest.mark.broker
END = re.compile(r"^        (.+), queue (\d+): (-?[\d,]+) to (-?[\d,]+)$", re.MULTILINE)
NAMED = "[ ] Start RocketMQ"


Ends = Mapping[tuple[str, int], tuple[int, int]]  # (minimum, maximum) by (topic, queue id)


def plain(session: Session, _: Ends) -> Seen:
    return session.run()


def as_leader(session: Session, _: Ends) -> Seen:
    return session.run_dledger()


def as_master(session: Session, _: Ends) -> Seen:
    return session.run_controlled(9)


def keyed(session: Session, ends: Ends) -> Seen:
    """A broker makes its queues in RocksDB when somebody asks for them."""
    with Jvm(session.release) as jvm, jvm.broker(session.root, session.settings) as broker:
        if not broker.load():
            return Seen(False)
        end = broker.java.getMaxPhyOffset()
        broker.start()
        for topic, queue_id in ends:
            broker.java.getConsumeQueue(topic, queue_id)
        broker.catch_up()
        return Seen(True, end, (), broker.serve(keys=False))


def unharmed(store: Path) -> None:
    """The copy as its broker left it."""


def hole(store: Path) -> None:
    """Zeros over more than a message, inside of the log."""
    path = sorted((store / "commitlog").iterdir())[1]
    data = path.read_bytes()
    middle = len(data.rstrip(b"\0")) // 2
    zero_range(path, middle, middle + 700)


@dataclass(frozen=True)
class Kind:
    """name: of a case, its folder in the corpus.  damage: what is done to it.  donor: as it was before that, it is one."""

    name: str
    damage: Callable[[Path], None]
    start: Callable[[Session, Ends], Seen] = plain
    donor: bool = False


KINDS = {
    "a torn message": Kind("g14-533-torn-old-seen", unharmed),
    "zeros at the end": Kind("g11-533-zero-tail", unharmed),
    "a wrong magic": Kind("g60-533-first-magic", unharmed),
    "a forced checksum": Kind("g67-540-force-crc", unharmed),
    "timers": Kind("g5x-533-broker-live", hole),
    "queues in RocksDB": Kind("kinds/rocksdb/g95-550-rdb-ahead-crash", unharmed, keyed),
    "DLedger": Kind("g103-514-dledger-tail", unharmed, as_leader),
    "controller mode": Kind("g112-550-controller-epoch-crc", unharmed, as_master),
    "with a donor": Kind("g5x-533-broker-live", hole, donor=True),
}


def typed(case: Case, root: Path, *words: str) -> int:
    conf = root.parent / "broker.conf"
    conf.write_text(case.broker_conf, "utf-8")
    return cli.main(["rescue", str(root), "--release", case.release, "--broker-conf", str(conf), *words])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_a_rescued_store_starts_as_its_page_says(kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if kind.start in (as_leader, as_master) and (reason := own_network.allowed()):
        pytest.skip(reason)
    case = Case(CORPUS / kind.name)
    root, more = case.unpack(tmp_path), []
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
    seen = kind.start(Session(case.release, new, case.broker_conf), shown)
    assert seen.loaded and seen.served is not None
    if kind.start in (plain, keyed):
        assert seen.end == report["log_end"]
    own = {key: (queue.min_offset, queue.max_offset) for key, queue in seen.served.queues.items()}
    compared = shown.keys() & own.keys()
    assert compared and {key: own[key] for key in compared} == {key: shown[key] for key in compared}
    held = {(q.topic, q.queue_id, m.record.queue_offset) for q in seen.served.queues.values() for m in q.messages}
    assert not held & unsaved(tmp_path / "new.unsaved.jsonl")
    if kind.donor:
        assert report["donor"]["taken"] and not report["donor"]["not_taken"]


def unsaved(path: Path) -> set[tuple[str, int, int]]:
    """(topic, queue id, queue offset) of each message that the file names."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
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


def test_a_running_broker_s_directory_is_not_rescued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = Case(CORPUS / "g41-533-fresh")
    root = case.unpack(tmp_path)
    with Jvm(case.release) as jvm, jvm.broker(root, case.broker_conf) as broker:
        assert broker.load()
        broker.start()
        assert typed(case, root, "--to", str(tmp_path / "new"), "--yes") == 3
    assert "holds the file lock in it, so a broker runs on this directory" in capsys.readouterr().err


def test_every_case_of_the_table_is_in_the_corpus() -> None:
    names: Sequence[str] = [kind.name for kind in KINDS.values() if "/" not in kind.name]
    assert set(names) <= {case.name for case in corpus_tools.cases()}

"""The sample store against the plain reference dispatch, and against the audit: whole, sound, and the same every time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dev.bench_stores import write_store
from dev.sample_kinds import CONF, KINDS, LEDGER, PLAIN, ROCKSDB, TIMERS, Pairs, Piece
from dev.sample_store import RELEASE, SampleStore, sample_pieces
from tests.support.answers.product import audit
from tests.support.stores.builders import Dispatcher, Record, Sizes, walk, write_derived

TINY = SampleStore(
    [200, 1024, 0, 4000], segment_bytes=65_536, last_bytes=40_000, topics=3, queues=2, queue_file_bytes=400, index_slots=97,
    index_max=200,
)  # fmt: skip


def write(root: Path, pieces: Iterator[Piece | Pairs]) -> Path:
    for piece in pieces:
        assert isinstance(piece, Piece)
        path = root / piece.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(bytes(piece.file_bytes))
        assert path.stat().st_size == piece.file_bytes
        with open(path, "r+b") as file:
            file.seek(piece.position)
            assert file.write(piece.data.tobytes()) <= piece.file_bytes - piece.position
    return root


def contents(root: Path) -> dict[str, bytes]:
    """Files by path; index files, whose names are a clock's, by their number."""
    found = {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
    index = [name for name in found if name.startswith("index/")]
    return {f"index/{index.index(name)}" if name in index else name: data for name, data in found.items()}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("sample"), sample_pieces(TINY))


def records(root: Path) -> Iterator[Record]:
    for path in sorted((root / "commitlog").iterdir()):
        yield from walk(path.read_bytes(), int(path.name))


def test_it_audits_as_consistent(root: Path) -> None:
    for conf in (None, "maxHashSlotNum=97\nmaxIndexNum=200\nmappedFileSizeConsumeQueue=400\nmappedFileSizeCommitLog=65536\n"):
        done = audit(root, RELEASE, conf)
        assert (done.outcome.exit_code, done.incomplete, done.findings) == (0, [], [])
        assert done.outcome.holds.messages == len(list(records(root))) > 100
        assert done.broker is not None and done.broker["lost"]["messages"] == 0


def test_its_derived_files_are_those_of_the_reference_dispatch(root: Path, tmp_path: Path) -> None:
    sizes = Sizes(TINY.segment_bytes, TINY.queue_file_bytes, slots=TINY.index_slots, index_max=TINY.index_max)
    dispatcher = Dispatcher(RELEASE, sizes)
    for record in records(root):
        dispatcher.put(record)
    write_derived(tmp_path, dispatcher)
    expected, found = contents(tmp_path), contents(root)
    assert sum(name.startswith("index/") for name in expected) > 2, "a full index file and the one after it were to be seen"
    assert max(len(queue.files) for queue in dispatcher.queues.values()) > 1, "a queue's second file was to be seen"
    assert {name: data for name, data in found.items() if name.startswith(("consumequeue/", "index/"))} == expected


def test_messages_are_of_the_kind_that_is_measured(root: Path) -> None:
    found = list(records(root))
    assert {(r.topic, r.queue_id) for r in found} == {(TINY.topic(t), q) for t in range(3) for q in range(2)}
    assert len({r.properties["UNIQ_KEY"] for r in found}) == len({r.properties["KEYS"] for r in found}) == len(found)
    assert all(re.fullmatch("[0-9A-F]{32}", r.properties["UNIQ_KEY"]) for r in found)
    assert {r.properties["TAGS"] for r in found} == {"TagA", "TagB", "TagC", "TagD"}
    assert {len(r.raw_properties) for r in found} == {86}
    first, last = ([len(r.body) for r in found if r.at // TINY.segment_bytes == n] for n in (0, 3))
    assert 100 <= min(first) < 120 and 280 < max(first) <= 300
    assert 2000 <= min(last) and max(last) <= 6000


def test_a_clean_stop_shows_in_the_small_files(root: Path) -> None:
    found = list(records(root))
    data = (root / "checkpoint").read_bytes()
    times = [int.from_bytes(data[at : at + 8], "big") for at in (0, 8, 16)]
    assert times[:2] == [found[-1].store_time] * 2 and 0 < times[2] < times[0]
    assert not (root / "abort").exists()


@pytest.mark.parametrize("chunk_bytes", [1, 20_000])
def test_chunks_change_nothing(root: Path, tmp_path: Path, chunk_bytes: int) -> None:
    assert contents(write(tmp_path, sample_pieces(replace(TINY, chunk_bytes=chunk_bytes)))) == contents(root)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != PLAIN])
def test_a_store_of_each_kind_audits_as_consistent(kind: str, tmp_path: Path) -> None:
    if kind == ROCKSDB:
        pytest.importorskip("rocksdict")
    store = replace(TINY, bodies=[200, 1024], last_bytes=None, index_max=2000, kind=kind, timers=40 if kind == TIMERS else 0)
    write_store(tmp_path, store)
    conf = "maxHashSlotNum=97\nmaxIndexNum=2000\nmappedFileSizeConsumeQueue=400\nmappedFileSizeCommitLog=65536\n"
    done = audit(tmp_path, RELEASE, conf + CONF[kind])
    assert (done.outcome.exit_code, done.incomplete, done.findings) == (0, [], [])
    assert done.outcome.holds.messages > 100 and done.broker is not None and done.broker["starts"]
    if kind == TIMERS:
        assert (
            done.outcome.holds.timers.fates.waiting.messages == done.outcome.holds.timers.units == 40
            and not done.outcome.covered.not_judged
        )
    if kind == LEDGER:
        assert done.broker["dledger"]["end_index"] == done.outcome.holds.messages - 1

"""Compacted topics: real stores write their logs, and what load() makes of damaged ones is what we say."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from store_io.kinds.compaction.compaction_kind import COMPACTION
from tests.broker_truth.harness.real_broker import Broker, Jvm, Put, conf_of
from tests.support.answers import product
from tests.support.damage import overwrite
from tests.support.stores.compacted import TOPIC, TOPICS_JSON, folders

pytestmark = pytest.mark.broker

JvmOf = Callable[[str], Jvm]
RELEASES = ("5.1.4", "5.3.3", "5.4.0", "5.5.0")
SETTINGS = {
    "mappedFileSizeCommitLog": 65536,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 50,
    "maxIndexNum": 400,
    "compactionMappedFileSize": 4600,
    "compactionCqMappedFileSize": 920,
}
CONF = conf_of(SETTINGS)
LOG_FILE, ENTRIES_FILE = 5520, 920  # what these settings make
OLDEST, NEWEST, BEYOND = (f"{number * LOG_FILE:020d}" for number in (0, 3, 4))
TEN = struct.pack(">q", 10)
OWN_FILES = ("commitlog/", "consumequeue/", "compaction/compaction", "index/")
QUEUE, OTHER = 0, 1  # of QUEUE the older files are compacted: its names have a gap


def puts(first: int, count: int) -> list[Put]:
    """Every fifth without a key."""
    made = []
    for n in range(first, first + count):
        made.append(Put(TOPIC, b"value %d" % n * 4, queue_id=n % 2, tags="t", keys=f"k{n % 7}" if n % 5 else None))
    return made


def write(root: Path, jvm: Jvm, clean: bool) -> None:
    (root / "config").mkdir(parents=True)
    (root / "config" / "topics.json").write_text(TOPICS_JSON)
    with opened(root, jvm) as broker:
        broker.begin()
        broker.put(puts(0, 150))
        broker.catch_up()
        broker.compact(TOPIC, QUEUE)
        broker.put(puts(150, 30))
        broker.catch_up()
        if clean:
            broker.shutdown()
        else:
            jvm.kill()


def opened(root: Path, jvm: Jvm, conf: str = CONF) -> Broker:
    return jvm.broker(root, conf, compacted_topics=(TOPIC,))


def ends(broker: Broker) -> dict[tuple[str, int], int]:
    """The queue offset from which on each opened log takes messages."""
    store = broker.field(broker.java, "compactionStore")
    table = broker.field(store, "compactionLogTable") if store is not None else {}
    return {(TOPIC, int(name.rpartition("_")[2])): table[name].getCQ().getMaxOffsetInQueue() for name in table}


def own_files(root: Path) -> set[str]:
    names = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    return {name for name in names if name.startswith(OWN_FILES)}


# ---- damage --------------------------------------------------------------------------------------------------------

Damage = Callable[[Path, Path], object]  # of the queue's log and of its entries


def both(act: Callable[[Path], object]) -> Damage:
    return lambda log, entries: (act(log), act(entries))


@dataclass(frozen=True)
class Row:
    """queue: whose files are damaged.  codes: of findings that must be there; after a clean stop above a note."""

    name: str
    damage: Damage
    codes: str = ""
    queue: int = QUEUE


TABLE = (
    Row("nothing", lambda log, entries: None),
    Row("newest log gone", lambda log, entries: (log / NEWEST).unlink(), "compacted_files_differ broker_refuses"),
    Row("newest entries gone", lambda log, entries: (entries / NEWEST).unlink(), "compacted_record_unlisted"),
    Row("oldest entries gone", lambda log, entries: (entries / OLDEST).unlink(), "compacted_files_differ broker_refuses"),
    Row("a name of a deleted file", lambda log, entries: (log / OLDEST).rename(log / f"{OLDEST}.delete"), "broker_refuses"),
    Row("a log cut", lambda log, entries: (log / NEWEST).write_bytes(b"x" * 100), "compacted_files_differ", OTHER),
    Row("entries cut", lambda log, entries: (entries / NEWEST).write_bytes(b"x" * 100), "compacted_files_differ", OTHER),
    Row("newest entries zero", lambda log, entries: overwrite(entries / NEWEST, 0, bytes(920)), "compacted_record_unlisted"),
    Row("an entry that leads far", lambda log, entries: overwrite(entries / NEWEST, 46 * 14, b"\x01"), "compacted_entry_wrong"),
    Row("an entry that leads back", lambda log, entries: overwrite(entries / NEWEST, 46 * 14, TEN), "broker_refuses"),
    Row("an entry zero", lambda log, entries: overwrite(entries / NEWEST, 46 * 5, bytes(46)), "compacted_message_missing"),
    Row("a body", lambda log, entries: overwrite(log / NEWEST, 100, b"\xff"), "compacted_record_damaged"),
    Row("a record zero", lambda log, entries: overwrite(log / OLDEST, 0, bytes(200)), "compacted_record_damaged"),
    Row("a log file without entries", lambda log, entries: (log / BEYOND).write_bytes(bytes(LOG_FILE))),
    Row("entries without a log file", lambda log, entries: (entries / BEYOND).write_bytes(bytes(ENTRIES_FILE)), "broker_refuses"),
    Row("both without an entry", lambda log, entries: [
        (log / BEYOND).write_bytes(bytes(LOG_FILE)), (entries / BEYOND).write_bytes(bytes(ENTRIES_FILE)),
    ]),
    Row("empty last files", both(lambda folder: (folder / BEYOND).write_bytes(b""))),
    Row("an empty file before a folder", lambda log, entries: [
        (log / BEYOND).write_bytes(b""), (log / "compacting").mkdir(),
    ], "compacted_files_differ"),
    Row("no folder of entries", lambda log, entries: shutil.rmtree(entries), "compacted_files_differ"),
    Row("no folder of the log", lambda log, entries: shutil.rmtree(log), "compacted_files_differ"),
    Row("an empty folder of entries", lambda log, entries: [shutil.rmtree(entries), entries.mkdir()], "broker_refuses"),
    Row("a queue's name", lambda log, entries: (log.parent / "x").mkdir(), "broker_refuses"),
    Row("a short name", lambda log, entries: (log / OLDEST).rename(log / "0"), "broker_refuses"),
    Row("all short names", both(lambda folder: (folder / OLDEST).rename(folder / "0")), "broker_refuses"),
    Row("a file in the topic's folder", lambda log, entries: (log.parent / "readme").write_bytes(b"text")),
    Row("all gone", lambda log, entries: shutil.rmtree(log.parents[2])),
)  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bool], Path]:
    """A store of each release, cleanly stopped or killed, written when it is first asked for."""
    made: dict[tuple[str, bool], Path] = {}

    def get(release: str, clean: bool) -> Path:
        if (release, clean) not in made:
            root = tmp_path_factory.mktemp("compacted") / "store"
            with Jvm(release) as jvm:
                write(root, jvm, clean)
            made[release, clean] = root
        return made[release, clean]

    return get


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("release", RELEASES)
def test_the_plan_is_what_load_does(
    release: str, clean: bool, row: Row, written: Callable[[str, bool], Path], jvm_of: JvmOf, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(written(release, clean), tmp_path / "store"))
    row.damage(*folders(root, row.queue))
    audit = product.audit(root, release, CONF)
    assert audit.incomplete == [] and audit.broker is not None
    assert set(row.codes.split()) <= {f.code for f in (audit.above_note if clean else audit.findings)}
    assert row.codes or audit.above_note == []
    before = own_files(root)
    with opened(root, jvm_of(release)) as broker:
        loaded = broker.load()
        assert audit.broker["starts"] == loaded, audit.broker["refusal"]
        if not loaded:
            return
        assert audit.broker["deleted_files"] == sorted(before - own_files(root))
        recovered = audit.audit.evidence[COMPACTION].start.queues
        for key, end in ends(broker).items():  # after a kill load() dispatches, too
            assert key not in recovered or end == recovered[key].next_offset or not clean and end > recovered[key].next_offset


@pytest.mark.parametrize("release", RELEASES)
def test_a_log_is_made_anew_as_the_document_says(
    release: str, written: Callable[[str, bool], Path], jvm_of: JvmOf, tmp_path: Path
) -> None:
    """compaction.md 6: both folders aside, no checkpoint, an abort file."""
    root = Path(shutil.copytree(written(release, True), tmp_path / "store"))
    for folder in folders(root, QUEUE):
        shutil.rmtree(folder)
    (root / "checkpoint").unlink()
    (root / "abort").write_bytes(b"")
    with opened(root, jvm_of(release)) as broker:
        broker.begin()
        served = broker.serve(keys=False).queues[TOPIC, QUEUE]
        assert [m.queue_offset for m in served.messages] == [n // 2 for n in range(0, 180, 2) if n % 5]
        broker.shutdown()
    audit = product.audit(root, release, CONF)
    assert audit.above_note == []


@pytest.mark.parametrize("release", RELEASES)
def test_consumers_get_what_the_compacted_log_holds(
    release: str, written: Callable[[str, bool], Path], jvm_of: JvmOf, tmp_path: Path
) -> None:
    """Of the compacted queue each key's newest message before the newest file."""
    root = Path(shutil.copytree(written(release, True), tmp_path / "store"))
    with opened(root, jvm_of(release)) as broker:
        broker.begin()
        queues = broker.serve(keys=False).queues
    assert len(queues[TOPIC, QUEUE].messages) < len(queues[TOPIC, OTHER].messages) == 72

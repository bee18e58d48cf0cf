"""Names and lengths of compacted topics' files: what load() opens, leaves out, and refuses."""

from __future__ import annotations

import pytest

from schemas.advice import RefusalKind
from store_io.broker.releases import Setting, broker_rules, compacted_entries_bytes, compacted_log_bytes
from store_io.broker.settings.read_settings import compacted_settings
from store_io.kinds.compaction.compacted_queues import CompactedStore, compacted_queues
from tests.support.handmade.evidence import tree_of

ENTRIES, LOG = 460, 2300
LOG_AT, ENTRIES_AT = "compaction/compactionLog/T/0/", "compaction/compactionCq/T/0/"
ZERO, NEXT = "0" * 20, f"{LOG:020d}"
SOUND = {LOG_AT + ZERO: LOG, LOG_AT + NEXT: LOG, ENTRIES_AT + ZERO: ENTRIES, ENTRIES_AT + NEXT: ENTRIES}


def opened(files: dict[str, int], release: str = "5.3.3", **settings: object) -> CompactedStore:
    known: dict[str, object] = {"compactionCqMappedFileSize": ENTRIES, "compactionMappedFileSize": LOG - ENTRIES, **settings}
    rules = broker_rules(release, {key: Setting(value, "broker.conf") for key, value in known.items()})
    return compacted_queues(tree_of(files), rules)


def test_both_folders_of_a_queue_are_opened() -> None:
    store = opened(SOUND)
    queue = store.queues["T", 0]
    assert (store.refusal, queue.refusal, queue.not_loaded, queue.loaded) == (None, None, None, True)
    assert [f.path for f in queue.log] == [LOG_AT + ZERO, LOG_AT + NEXT] and len(queue.entries) == 2


@pytest.mark.parametrize(("release", "setting"), [("5.0.0", True), ("4.9.8", True), ("5.3.3", False)])
def test_a_release_that_does_not_compact_reads_nothing(release: str, setting: bool) -> None:
    assert opened({LOG_AT + "x": 5}, release, enableCompaction=setting).queues == {}


@pytest.mark.parametrize(
    ("files", "blamed"),
    [
        ({"compaction/compactionLog/T/x/0": 5}, "compaction/compactionLog/T/x"),
        ({LOG_AT + ZERO + ".delete": LOG}, LOG_AT + ZERO + ".delete"),
        ({ENTRIES_AT + "y": ENTRIES}, ENTRIES_AT + "y"),
    ],
)
def test_a_name_that_is_no_number_ends_the_load(files: dict[str, int], blamed: str) -> None:
    store = opened({**SOUND, **files})
    refusal = store.refusal or store.queues["T", 0].refusal
    assert refusal is not None and refusal.path == blamed


@pytest.mark.parametrize("path", [LOG_AT + ZERO, ENTRIES_AT + NEXT])
def test_a_wrong_length_leaves_the_queue_out(path: str) -> None:
    queue = opened({**SOUND, path: 100}).queues["T", 0]
    assert queue.refusal is None and queue.not_loaded is not None
    assert (queue.not_loaded.kind, queue.not_loaded.path, queue.not_loaded.actual) == (RefusalKind.FILE_LENGTH, path, 100)


@pytest.mark.parametrize("only", [LOG_AT, ENTRIES_AT])
def test_one_folder_alone_is_not_loaded(only: str) -> None:
    queue = opened({path: size for path, size in SOUND.items() if path.startswith(only)}).queues["T", 0]
    assert not queue.loaded and queue.not_loaded is not None and queue.refusal is None
    assert queue.not_loaded.path == only.rstrip("/")


@pytest.mark.parametrize(("release", "deleted"), [("5.1.2", False), ("5.1.3", True)])
def test_an_empty_last_file_is_deleted(release: str, deleted: bool) -> None:
    path = LOG_AT + f"{2 * LOG:020d}"
    queue = opened({**SOUND, path: 0}, release).queues["T", 0]
    assert (queue.deleted, bool(queue.not_loaded)) == (([path], False) if deleted else ([], True))


def test_a_size_of_less_than_an_entry_ends_the_load() -> None:
    refusal = opened(SOUND, compactionCqMappedFileSize=45).queues["T", 0].refusal
    assert refusal is not None and refusal.kind == RefusalKind.COMPACTED_SETTING


@pytest.mark.parametrize(
    ("configured", "entries", "length"),
    [(100 << 20, 10 << 20, 104_857_460), (4600, 920, 5520), (100, 920, 4600), (5000, 920, 4600), (5100, 920, 5520)],
)
def test_the_length_of_a_log_file(configured: int, entries: int, length: int) -> None:
    """As real stores have it: 4600 with 920 makes 5520."""
    assert compacted_log_bytes(configured, compacted_entries_bytes(entries)) == length


@pytest.mark.parametrize("count", [5, 6, 11])
def test_settings_are_inferred_so_that_they_make_these_files(count: int) -> None:
    found = compacted_settings(ENTRIES, count * ENTRIES)
    assert compacted_log_bytes(found["compactionMappedFileSize"], found["compactionCqMappedFileSize"]) == count * ENTRIES


@pytest.mark.parametrize("sizes", [(0, 0), (45, 450), (460, 4000), (460, 1840)])
def test_lengths_of_no_broker_say_nothing(sizes: tuple[int, int]) -> None:
    assert compacted_settings(*sizes) == {}

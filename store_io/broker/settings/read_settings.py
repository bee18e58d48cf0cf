"""broker.conf -> settings, and file sizes from the files themselves where it names none.

Paths inside a broker.conf are never followed: where parts of a store lie is for the caller to say.
Source: BrokerStartup, MixAll.properties2Object, MessageStoreConfig and BrokerConfig, 4.8.0 to 5.5.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from schemas.layouts import consumequeue_layout, index_layout, rocksdb_layout
from schemas.layouts.dledger_layout import DATA, FOLDER_PREFIX
from schemas.layouts.store_names import (
    ACLS,
    BATCH_QUEUES,
    COMMITLOG,
    COMPACTED_LOG,
    COMPACTED_QUEUE,
    EPOCH_FILE,
    EXT,
    INDEX,
    QUEUES,
    TIERED_METADATA,
    TIMER_LOG,
    USERS,
)
from schemas.rows import StoreFile
from store_io.base.errors import RefusedSetting, StoreError
from store_io.base.java.java_compat import parse_number
from store_io.base.java.java_properties import parse_properties
from store_io.broker.queues.start_databases import opened_databases
from store_io.broker.releases import (
    ALL_DEFAULTS,
    LEAST_COMPACTED_FILES,
    NEWEST_RELEASE,
    ROCKSDB_STORE_TYPE,
    SIZE_DEFAULTS,
    TIERED_PLUG_IN,
    Setting,
    broker_rules,
    default_settings,
    index_bytes,
    parse_release,
    taken_setting,
)
from store_io.broker.settings.config_rules import (
    CONSUMER_OFFSETS,
    LMQ_OFFSETS,
    SECOND_VERSION,
    SECOND_VERSION_FOLDER,
    SINGLE_FOLDER,
    TOPICS,
)
from store_io.broker.settings.ledger_files import ledger_folders
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource, folder_of, name_of, open_source
from store_io.source.store_dir import DLEDGER, StoreListing

INDEX_KEYS = ("maxHashSlotNum", "maxIndexNum")
_TIMER_SLOTS = ("timerPrecisionMs", "timerRollWindowSlot")  # a broker makes another number of a bad one
SAMPLE_ENTRIES = 4096  # of an index file, looked at to learn where its entries begin
MAX_SAMPLED_FILES = 8
TAIL_WINDOW_BYTES = 1 << 20


def read_settings(broker_conf: str | None, listing: StoreListing, source: ByteSource | None = None) -> dict[str, Setting]:
    """Return every modelled key: as broker.conf has it, or the release's default.

    Without a broker.conf sizes, DLedger's and controller mode, queues, tables and other databases in RocksDB are taken as the
    files show them. A broker whose file is silent about a key takes the default, whatever the files are (contract.md), so nothing
    is inferred then.

    broker_conf: the file's text; None without one. Keys that are not modelled are ignored. `broker_rules` settles what a release
    makes of a text; here it is as the newest one takes it.
    Raises UsageError naming key and value if no broker works with a value.
    """
    settings = default_settings() | (given_settings(broker_conf, NEWEST_RELEASE) if broker_conf is not None else {})
    if broker_conf is None:
        for key, value in {**_file_sizes(listing), **_index_numbers(listing, source, settings)}.items():
            settings[key] = Setting(value, "inferred" if value != ALL_DEFAULTS[key] else "default")
        if _queues_in_database(listing):
            settings["storeType"] = Setting(ROCKSDB_STORE_TYPE, "inferred")
        if _tables_in_second_version(listing):
            settings["configManagerVersion"] = Setting(SECOND_VERSION, "inferred")
        if listing.is_file(f"{SINGLE_FOLDER}/{rocksdb_layout.CURRENT}"):
            settings["useSingleRocksDBForAllConfigs"] = Setting(True, "inferred")
        if _offsets_of_light_queues(listing):
            settings["enableLmq"] = Setting(True, "inferred")
        if listing.is_file(EPOCH_FILE):  # only a broker in controller mode writes it
            settings["enableControllerMode"] = Setting(True, "inferred")
        for rule in opened_databases(broker_rules()):  # only a broker with the setting makes the folder
            made_together = (USERS, ACLS) if rule.folder in (USERS, ACLS) else (rule.folder,)
            if any(listing.is_file(f"{folder}/{rocksdb_layout.CURRENT}") for folder in made_together):
                settings[rule.key] = Setting(rule.value, "inferred")
        tiered = listing.get(TIERED_METADATA)
        if tiered is not None and tiered.size:
            settings["messageStorePlugIn"] = Setting(TIERED_PLUG_IN, "inferred")
        settings |= _ledger_settings(listing)
    return settings


def read_given(broker_conf: str, release: str) -> dict[str, Any]:
    """Return the values that this release takes of a broker.conf, by key. Raises UsageError."""
    return {
        key: setting.value
        for key, setting in sorted(given_settings(broker_conf, release).items())
        if setting.origin == "broker.conf"
    }


def given_settings(broker_conf: str, release: str) -> dict[str, Setting]:
    """Return the modelled keys that a broker.conf names, as this release takes them. Raises UsageError."""
    texts = parse_properties(broker_conf)
    version = parse_release(release)
    found = {}
    for key in ALL_DEFAULTS.keys() & texts.keys():
        found[key] = own = taken_setting(key, texts[key], version)
        if key in SIZE_DEFAULTS and key not in _TIMER_SLOTS and own.value < 1:
            raise RefusedSetting(f"{key}={texts[key]}: not above 0")
    return found


def _queues_in_database(listing: StoreListing) -> bool:
    """Say whether the queues' folder holds a database and no queue in files."""
    own = [entry for entry in listing.files if entry.path.startswith(f"{QUEUES}/")]
    return listing.is_file(f"{QUEUES}/{rocksdb_layout.CURRENT}") and all(entry.kind != "directory" for entry in own)


def _tables_in_second_version(listing: StoreListing) -> bool:
    """Say whether config/ holds the database of the second version and no file of topics, which a broker without it writes."""
    return listing.is_file(f"{SECOND_VERSION_FOLDER}/{rocksdb_layout.CURRENT}") and not any(
        listing.is_file(TOPICS + end) for end in ("", ".bak")
    )


def _offsets_of_light_queues(listing: StoreListing) -> bool:
    """Say whether config/ holds the offsets file of a broker with light queues, and not the one that others write."""
    light, plain = (
        any((entry := listing.get(path + end)) is not None and entry.kind == "file" and entry.size for end in ("", ".bak"))
        for path in (LMQ_OFFSETS, CONSUMER_OFFSETS)
    )
    return light and not plain


def _ledger_settings(listing: StoreListing) -> dict[str, Setting]:
    """Return the settings that folders of DLedger groups show, so that a log there is read, and not taken as missing."""
    folders = ledger_folders(listing.files, with_data=True)
    found = {"enableDLegerCommitLog": Setting(True, "inferred")} if folders else {}
    if len(folders) == 1:
        found["dLegerSelfId"] = Setting(folders[0].removeprefix(FOLDER_PREFIX), "inferred")
    return found


# ---- sizes from the files ------------------------------------------------------------------------------------------


def mapped_files(listing: StoreListing) -> dict[str, list[StoreFile]]:
    """Return files that are not empty, by the folder of their kind."""
    kinds: dict[str, list[StoreFile]] = {key: [] for key in (COMMITLOG, QUEUES, EXT, BATCH_QUEUES, TIMER_LOG)}
    for entry in listing.files:
        folder = folder_of(entry.path)
        top, _, below = folder.partition("/")
        depth = below.count("/") if below else -1
        if entry.kind == "file" and entry.size and top in kinds and depth == (-1 if top in (COMMITLOG, TIMER_LOG) else 1):
            kinds[top].append(entry)
        elif entry.kind == "file" and entry.size and below == DATA and DLEDGER.fullmatch(top):
            kinds[COMMITLOG].append(entry)
    return kinds


def _file_sizes(listing: StoreListing) -> dict[str, int]:
    """Return the sizes of mapped files, of each kind in which most files have the same one."""
    kinds = mapped_files(listing)
    found = {
        "mappedFileSizeCommitLog": agreed_size(kinds[COMMITLOG]),
        "mappedFileSizeConsumeQueue": agreed_size(kinds[QUEUES], consumequeue_layout.ENTRY_BYTES),
        "mappedFileSizeConsumeQueueExt": agreed_size(kinds[EXT]),
        "mapperFileSizeBatchConsumeQueue": agreed_size(kinds[BATCH_QUEUES]),
        "mappedFileSizeTimerLog": agreed_size(kinds[TIMER_LOG]),
    }
    compacted = (agreed_size(_below(listing, part)) for part in (COMPACTED_QUEUE, COMPACTED_LOG))
    return {**{key: size for key, size in found.items() if size}, **compacted_settings(*compacted)}


def compacted_settings(entries_bytes: int, log_bytes: int) -> dict[str, int]:
    """Return the settings under which files of compacted topics have these lengths; {} if no broker makes such files."""
    if entries_bytes <= 0 or entries_bytes % consumequeue_layout.BATCH_ENTRY_BYTES or log_bytes % entries_bytes:
        return {}
    if log_bytes // entries_bytes < LEAST_COMPACTED_FILES:
        return {}
    return {"compactionCqMappedFileSize": entries_bytes, "compactionMappedFileSize": log_bytes - entries_bytes}


def _below(listing: StoreListing, folder: str) -> list[StoreFile]:
    return [entry for entry in listing.files if entry.kind == "file" and entry.path.startswith(folder + "/")]


def agreed_size(files: Sequence[StoreFile], unit: int = 1) -> int:
    """Yield the size that more than half of the files with a number as their name have; 0 without one.

    If no size has that many, the distance between neighbouring names decides, if a file has it as its size.
    """

    def known() -> Iterator[tuple[str, int, int]]:
        for file in files:
            start = parse_number(name_of(file.path), 64)
            if start is not None and start >= 0 and file.size % unit == 0:
                yield folder_of(file.path), start, file.size

    sizes = Counter(size for _, _, size in known())
    if not sizes:
        return 0
    size, count = max(sizes.items(), key=lambda item: (item[1], item[0]))
    if 2 * count > sizes.total():
        return size
    steps = Counter(b[1] - a[1] for a, b in pairwise(sorted(known())) if a[0] == b[0] and b[1] > a[1])
    step = max(steps, key=lambda s: (steps[s], s), default=0)
    return step if step in sizes else 0


def _index_numbers(listing: StoreListing, source: ByteSource | None, settings: dict[str, Setting]) -> dict[str, int]:
    """Return maxHashSlotNum and maxIndexNum, from an index file's size and content.

    The size alone fits many pairs: the entries show their begin, and index files without any entry are explained by the default
    proportion of slots to entries.
    """
    files = [
        e
        for e in listing.files
        if folder_of(e.path) == INDEX
        and e.kind == "file"
        and e.size > index_layout.HEADER_BYTES
        and parse_number(name_of(e.path), 64) is not None
    ]
    sizes = Counter(e.size for e in files)
    if not sizes:
        return {}
    size, count = max(sizes.items(), key=lambda item: (item[1], item[0]))
    slots, entries = (settings[key] for key in INDEX_KEYS)
    room = size - index_layout.HEADER_BYTES
    if 2 * count <= len(files):
        return {}
    if index_bytes(slots.value, entries.value) == size:
        return {"maxHashSlotNum": slots.value, "maxIndexNum": entries.value}
    if room % index_layout.SLOT_BYTES:
        return {}
    votes: Counter[int] = Counter()
    own = source or open_source(listing.location)
    for entry in [e for e in files if e.size == size][:MAX_SAMPLED_FILES]:
        try:
            with own.open(entry.path) as file:
                found = infer_slots(file) if file.size == size else None
        except StoreError:
            continue  # a failed read is noted: `base.failed_reads`
        if found is not None:
            votes[found] += 1
    number = max(votes, key=lambda n: (votes[n], n)) if votes else _proportional_slots(room)
    left = room - index_layout.SLOT_BYTES * number
    return {"maxHashSlotNum": number, "maxIndexNum": left // index_layout.ENTRY_BYTES} if number > 0 and left > 0 else {}


def _proportional_slots(room: int) -> int:
    """Return the number of slots nearest to the default proportion (one to four) that makes up the size exactly. 0: none does."""
    step = index_layout.ENTRY_BYTES // index_layout.SLOT_BYTES
    wanted = room // (index_layout.SLOT_BYTES + 4 * index_layout.ENTRY_BYTES)
    total = room // index_layout.SLOT_BYTES
    return wanted + (total - wanted) % step


def infer_slots(file: ByteFile) -> int | None:
    """Return the number of hash slots of an index file, by its entries; None if they do not show it.

    The last byte that is not zero lies in the last entry, and entries end at the file's end, so there is one candidate for the
    header's count and one for each other count that the header's offsets allow. The chains of the first entries decide.
    """
    header = file.read(0, index_layout.HEADER_BYTES)
    count = int.from_bytes(header[index_layout.INDEX_COUNT_POSITION :][:4], "big", signed=True)
    end = _last_data_end(file)
    if end <= index_layout.HEADER_BYTES or count < 2:
        return None
    # Entries end at the file's end, so only one position can be that of the entry which holds the data's last byte.
    last = end - 1 - (end - 1 - file.size) % index_layout.ENTRY_BYTES
    candidates = []
    for number in (count - 1, count, count - 2):
        table = last - index_layout.ENTRY_BYTES * number
        slots, odd = divmod(table - index_layout.HEADER_BYTES, index_layout.SLOT_BYTES)
        if slots > 0 and not odd:
            candidates.append(slots)
    # Where the count is damaged: the first entry leads to the message that the header names.
    begin = header[index_layout.BEGIN_PHY_OFFSET_POSITION :][:8]
    if any(begin):
        head = file.read(0, min(file.size, TAIL_WINDOW_BYTES))
        at = head.find(begin, index_layout.HEADER_BYTES)
        while at >= 0 and len(candidates) < 64:
            table = at - 4 - index_layout.ENTRY_BYTES
            slots, odd = divmod(table - index_layout.HEADER_BYTES, index_layout.SLOT_BYTES)
            if slots > 0 and not odd and (file.size - table) % index_layout.ENTRY_BYTES == 0 and slots not in candidates:
                candidates.append(slots)
            at = head.find(begin, at + 1)
    scored = [(_chain_score(file, slots), -i, slots) for i, slots in enumerate(candidates)]
    best = max(scored, default=(0.0, 0, 0))
    return best[2] if best[0] > 0.9 else None


def _last_data_end(file: ByteFile) -> int:
    """Return position after the file's last byte that is not zero."""
    end = file.size
    while end > 0:
        low = max(0, end - TAIL_WINDOW_BYTES)
        if file.next_data(low) < end:
            kept = np.flatnonzero(np.frombuffer(file.read(low, end - low), np.uint8))
            if len(kept):
                return low + int(kept[-1]) + 1
        end = low
    return 0


def _chain_score(file: ByteFile, slots: int) -> float:
    """Return the part of the first entries that is chained as that many slots would have it."""
    table = index_layout.HEADER_BYTES + index_layout.SLOT_BYTES * slots
    rows = np.frombuffer(file.read(table + index_layout.ENTRY_BYTES, SAMPLE_ENTRIES * index_layout.ENTRY_BYTES), np.uint8)
    rows = rows[: len(rows) // index_layout.ENTRY_BYTES * index_layout.ENTRY_BYTES].reshape(-1, index_layout.ENTRY_BYTES)
    used = rows.any(axis=1)
    rows = rows[: len(rows) if used.all() else int(np.argmin(used))]
    if not len(rows) or file.read(table, index_layout.ENTRY_BYTES).strip(b"\0"):
        return 0.0
    hashes = rows[:, 0:4].copy().view(">i4")[:, 0].astype(np.int64)
    previous = rows[:, 16:20].copy().view(">i4")[:, 0].astype(np.int64)
    newest: dict[int, int] = {}
    right = 0
    for number, (key_hash, link) in enumerate(zip(hashes.tolist(), previous.tolist(), strict=True), 1):
        slot = key_hash % slots
        right += key_hash >= 0 and newest.get(slot, 0) == link
        newest[slot] = number
    return right / len(rows)

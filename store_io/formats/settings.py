"""broker.conf -> settings, and file sizes from the files themselves where it names none.

Paths inside a broker.conf are never followed: where parts of a store lie is for the caller to say.
Source: java.util.Properties.load, MixAll.properties2Object, MessageStoreConfig and BrokerConfig, 4.8.0 to 5.5.0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from schemas import consumequeue_layout, index_layout, rocksdb_layout
from schemas.dledger_layout import DATA, FOLDER_PREFIX
from schemas.rows import StoreFile
from schemas.store_names import (
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
)
from store_io.base.errors import StoreError, UsageError
from store_io.base.java_compat import parse_number
from store_io.rules.compaction.compacted_queues import inferred_settings
from store_io.rules.dledger.ledger_files import ledger_folders
from store_io.rules.releases import (
    ALL_DEFAULTS,
    FLAG_DEFAULTS,
    ROCKSDB_STORE_TYPE,
    SIZE_DEFAULTS,
    TIERED_PLUG_IN,
    Setting,
    default_settings,
    index_bytes,
    parse_delay_levels,
)
from store_io.source.byte_source import ByteFile, ByteSource, folder_of, name_of, open_source
from store_io.source.store_dir import DLEDGER, StoreListing

ROLES = ("ASYNC_MASTER", "SYNC_MASTER", "SLAVE")
INDEX_KEYS = ("maxHashSlotNum", "maxIndexNum")
SAMPLE_ENTRIES = 4096  # of an index file, looked at to learn where its entries begin
MAX_SAMPLED_FILES = 8
TAIL_WINDOW_BYTES = 1 << 20

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPACE = " \t\f"


def read_settings(broker_conf: str | None, listing: StoreListing, source: ByteSource | None = None) -> dict[str, Setting]:
    """Every modelled key: as broker.conf has it, or the release's default; without a broker.conf sizes, controller mode and
    queues in RocksDB as the files show them.

    A broker whose file is silent about a size takes the default, whatever the files are (contract.md), so nothing is inferred
    then. broker_conf: the file's text; None where there is none. Keys that are not modelled are ignored.
    Raises UsageError naming key and value where a value is of the wrong kind.
    """
    settings = default_settings()
    given = parse_conf(broker_conf) if broker_conf is not None else {}
    for key in settings.keys() & given.keys():
        settings[key] = Setting(_value(key, given[key]), "broker.conf")
    if broker_conf is None:
        for key, value in {**_file_sizes(listing), **_index_numbers(listing, source, settings)}.items():
            settings[key] = Setting(value, "inferred" if value != ALL_DEFAULTS[key] else "default")
        if _queues_in_database(listing):
            settings["storeType"] = Setting(ROCKSDB_STORE_TYPE, "inferred")
        if listing.is_file(EPOCH_FILE):  # only a broker in controller mode writes it
            settings["enableControllerMode"] = Setting(True, "inferred")
        tiered = listing.get(TIERED_METADATA)
        if tiered is not None and tiered.size:
            settings["messageStorePlugIn"] = Setting(TIERED_PLUG_IN, "inferred")
    return settings | _ledger_settings(listing, settings)


def _queues_in_database(listing: StoreListing) -> bool:
    """Whether the queues' folder holds a database and no queue in files."""
    own = [entry for entry in listing.files if entry.path.startswith(f"{QUEUES}/")]
    return listing.is_file(f"{QUEUES}/{rocksdb_layout.CURRENT}") and all(entry.kind != "directory" for entry in own)


def _ledger_settings(listing: StoreListing, settings: dict[str, Setting]) -> dict[str, Setting]:
    """What the folders of DLedger groups say where no setting does: a log there is read as one, not as missing."""
    folders = ledger_folders(listing.files, with_data=True)
    enabled = settings["enableDLegerCommitLog"]
    found = {}
    if folders and enabled.origin != "broker.conf":
        enabled = found["enableDLegerCommitLog"] = Setting(True, "inferred")
    if enabled.value and not settings["dLegerSelfId"].value and len(folders) == 1:
        found["dLegerSelfId"] = Setting(folders[0].removeprefix(FOLDER_PREFIX), "inferred")
    return found


def read_given(broker_conf: str) -> dict[str, Any]:
    """The modelled keys that a broker.conf names, as `read_settings` understands them. Raises UsageError."""
    given = parse_conf(broker_conf)
    return {key: _value(key, given[key]) for key in sorted(default_settings().keys() & given.keys())}


# ---- the properties file -------------------------------------------------------------------------------------------


def parse_conf(text: str, spaces: bool = False) -> dict[str, str]:
    """java.util.Properties.load: `key=value`, `key: value` or `key value`, comments, continued lines, escapes.

    The last of equal keys counts. Spaces around a value, which Java keeps where they trail or are escaped, are dropped, but not
    with `spaces`. Raises UsageError for a \\u without four hex digits.
    """
    found = {}
    for line in _logical_lines(text):
        end = separator = len(line)
        escaped = False
        for i, character in enumerate(line):
            if not escaped and character in "=:" + _SPACE:
                end, separator = i, i
                break
            escaped = character == "\\" and not escaped
        rest = line[separator:].lstrip(_SPACE)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_SPACE)
        value = _unescape(rest)
        found[_unescape(line[:end])] = value if spaces else value.strip()
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blanks, a continued one joined with those that continue it."""
    whole = ""
    continuing = False
    for natural in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")):
        line = natural.lstrip(_SPACE)
        if not continuing and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        continuing = backslashes % 2 == 1
        whole += line[:-1] if continuing else line
        if not continuing:
            yield whole
            whole = ""
    if whole:
        yield whole


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code, character = match[1], match[2]
        if code is not None:
            return chr(int(code, 16))
        if character == "u":
            raise UsageError(f"broker.conf: {text!r}: \\u needs four hexadecimal digits")
        return _ESCAPES.get(character, character)

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", plain, text)


def _value(key: str, text: str) -> Any:
    """The text as what the key holds."""
    if key in FLAG_DEFAULTS:
        if text.lower() not in ("true", "false"):
            raise UsageError(f"broker.conf: {key}={text}: neither true nor false")
        return text.lower() == "true"
    default = ALL_DEFAULTS[key]
    if isinstance(default, int):
        number = parse_number(text, 64 if key in ("brokerId", "transactionCheckInterval") else 32)
        if number is None:
            raise UsageError(f"broker.conf: {key}={text}: not a number that a broker takes")
        if key in SIZE_DEFAULTS and number < 1:
            raise UsageError(f"broker.conf: {key}={text}: not above 0")
        return number
    if key == "messageDelayLevel":
        try:
            parse_delay_levels(text)
        except UsageError as error:
            raise UsageError(f"broker.conf: {error}") from error
    if key == "brokerRole" and text not in ROLES:
        raise UsageError(f"broker.conf: {key}={text}: none of {', '.join(ROLES)}")
    return text


# ---- sizes from the files ------------------------------------------------------------------------------------------


def mapped_files(listing: StoreListing) -> dict[str, list[StoreFile]]:
    """Files that are not empty, by the folder of their kind."""
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
    """Sizes of mapped files, where most of a kind have the same one."""
    kinds = mapped_files(listing)
    found = {
        "mappedFileSizeCommitLog": agreed_size(kinds[COMMITLOG]),
        "mappedFileSizeConsumeQueue": agreed_size(kinds[QUEUES], consumequeue_layout.ENTRY_BYTES),
        "mappedFileSizeConsumeQueueExt": agreed_size(kinds[EXT]),
        "mapperFileSizeBatchConsumeQueue": agreed_size(kinds[BATCH_QUEUES]),
        "mappedFileSizeTimerLog": agreed_size(kinds[TIMER_LOG]),
    }
    compacted = (agreed_size(_below(listing, part)) for part in (COMPACTED_QUEUE, COMPACTED_LOG))
    return {**{key: size for key, size in found.items() if size}, **inferred_settings(*compacted)}


def _below(listing: StoreListing, folder: str) -> list[StoreFile]:
    return [entry for entry in listing.files if entry.kind == "file" and entry.path.startswith(folder + "/")]


def agreed_size(files: Iterable[StoreFile], unit: int = 1) -> int:
    """The size that more than half of the files with a number as their name have; 0 without one.

    Where no size has that, the distance between neighbouring names decides, if a file has it as its size.
    """
    named = [(folder_of(f.path), parse_number(name_of(f.path), 64), f.size) for f in files]
    known = sorted(
        (folder, start, size) for folder, start, size in named if start is not None and start >= 0 and size % unit == 0
    )
    sizes = Counter(size for _, _, size in known)
    if not sizes:
        return 0
    size, count = max(sizes.items(), key=lambda item: (item[1], item[0]))
    if 2 * count > len(known):
        return size
    steps = Counter(b[1] - a[1] for a, b in pairwise(known) if a[0] == b[0] and b[1] > a[1])
    step = max(steps, key=lambda s: (steps[s], s), default=0)
    return step if step in sizes else 0


def _index_numbers(listing: StoreListing, source: ByteSource | None, settings: dict[str, Setting]) -> dict[str, int]:
    """maxHashSlotNum and maxIndexNum, from an index file's size and content.

    The size alone fits many pairs: the entries show where they begin, and index files without any entry are explained by the
    default proportion of slots to entries.
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
            continue  # whatever is wrong with the file is said where it is scanned
        if found is not None:
            votes[found] += 1
    number = max(votes, key=lambda n: (votes[n], n)) if votes else _proportional_slots(room)
    left = room - index_layout.SLOT_BYTES * number
    return {"maxHashSlotNum": number, "maxIndexNum": left // index_layout.ENTRY_BYTES} if number > 0 and left > 0 else {}


def _proportional_slots(room: int) -> int:
    """The number of slots nearest to the default proportion (one to four) that makes up the size exactly; 0: none does."""
    step = index_layout.ENTRY_BYTES // index_layout.SLOT_BYTES
    wanted = room // (index_layout.SLOT_BYTES + 4 * index_layout.ENTRY_BYTES)
    total = room // index_layout.SLOT_BYTES
    return wanted + (total - wanted) % step


def infer_slots(file: ByteFile) -> int | None:
    """How many hash slots an index file has, by its entries; None where they do not show it.

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
    """Position after the file's last byte that is not zero."""
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
    """What part of the first entries is chained as that many slots would have it."""
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

"""The names in a copied store: what lies where, what it is, and which are unknown. Nothing is opened.

Source: StorePathConfigHelper, MultiPathMappedFileQueue, ConsumeQueueStore, RocksDBConsumeQueueStore, CompactionStore, DLedger's
and the tiered store's path settings (formats.md 1, 8, 10 to 14).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from operator import attrgetter

from schemas.advice import Cause, Gap
from schemas.finding_codes import Code
from schemas.layouts import checkpoint_layout
from schemas.layouts.rocksdb_layout import TABLES_FOLDER
from schemas.layouts.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, PARTS, QUEUES, UPLOAD_MARK
from schemas.rows import Finding, StoreFile
from store_io.base.errors import NotAStore, StoreError, Unreadable
from store_io.base.failed_reads import can_do_without
from store_io.base.wording import names_text
from store_io.source.byte_source import DerivedLocation, StoreLocation, check_root, open_source, shown

# Folders that are listed with all that is below them. Others are known by name, or not at all.
_LISTED = re.compile(r"commitlog|consumequeue(_.*)?|batchconsumequeue|index|config|timerlog|compaction|kvStore|dledger-.*")
_KNOWN = re.compile(
    r"checkpoint|abort(\.bak)?|lock|timerwheel(\..*)?|epochFileCheckpoint(\.bak)?|brokerIdentity(-temp)?(\.bak)?|transaction|rocksdbstore|RocksDBMessageStore|lost\+found"
)
DLEDGER = re.compile(r"dledger-.+")
_CONFIG_FILE = re.compile(r"config/(topics|consumerOffset|subscriptionGroup|delayOffset)\.json(\.bak)?")
_SEGMENT_NAME = re.compile(r"[0-9]{20}")
MOST_BELOW = 20  # folders below one that is no store, in which a store is looked for
UNREAD_KINDS = ("link_out", "unreadable", "special")  # of what has a name and is never opened: nobody knows its length


@dataclass(frozen=True)
class StoreListing:
    """Every name in the copy that can matter, by path. `files` holds directories and special files, too.

    Sorted and stable: the same copy gives the same listing. A folder that no release writes is listed by its name alone. A
    segment name in several CommitLog folders comes once for each (`byte_source.folder_of` gives the broker's folder).
    """

    location: StoreLocation
    files: tuple[StoreFile, ...]

    @cached_property
    def by_path(self) -> dict[str, StoreFile]:
        return {entry.path: entry for entry in self.files}

    def get(self, path: str) -> StoreFile | None:
        """Return the file with this path, or None."""
        return self.by_path.get(path)

    def without(self, path: str) -> StoreListing:
        """Return the listing as it were without this file."""
        return StoreListing(self.location, tuple(entry for entry in self.files if entry.path != path))

    def is_file(self, path: str) -> bool:
        """Say whether a regular file of the store has this path."""
        entry = self.get(path)
        return entry is not None and entry.kind == "file"

    @property
    def has_config(self) -> bool:
        """Say whether anything in config/ was copied."""
        return any(entry.path.startswith("config/") for entry in self.files)

    @property
    def unclean(self) -> bool:
        """Say whether the abort marker is there. Only its existence counts, whatever it is."""
        return self.get(checkpoint_layout.ABORT_FILE) is not None


def in_path_order(files: Iterable[StoreFile]) -> tuple[StoreFile, ...]:
    """Return the files in the order of their paths; of two with the same path the later one."""
    return tuple(sorted({file.path: file for file in files}.values(), key=attrgetter("path")))


def list_store(location: StoreLocation) -> StoreListing:
    """Return all names of the store. Raises NotAStore, Unreadable or UsageError, each one sentence that names the place."""
    listing = list_folder(location)
    check_names(location, listing.files)
    return listing


def list_folder(location: StoreLocation) -> StoreListing:
    """List any folder, of which `why_no_store` then says whether a store is in it. Raises as `list_store`."""
    return StoreListing(location, in_path_order(_names(location)))


def _names(location: StoreLocation) -> Iterator[StoreFile]:
    """Yield the names of a folder one by one, in no order."""
    check_roots(location)
    source = open_source(location)
    for entry in source.names():
        yield entry
        if entry.kind == "directory" and _LISTED.fullmatch(entry.path):
            yield from source.walk_tree(entry.path)


def every_file(listing: StoreListing) -> list[StoreFile]:
    """Return the files of the listing, and those of the one folder that the listing has by its name alone.

    An audit reads that folder, too.

    Raises StoreError and OSError.
    """
    if listing.get(TABLES_FOLDER) is None:
        return [*listing.files]
    return [*listing.files, *open_source(listing.location).list_tree(TABLES_FOLDER)]


def check_roots(location: StoreLocation) -> None:
    """Raise NotAStore or Unreadable where the store's folder, or one that holds a part of it, cannot be listed."""
    check_root(location.root, location.since)
    for name, folders in location.parts:
        for folder in folders:
            try:
                check_root(folder, location.since)
            except NotAStore as error:
                raise NotAStore(f"{name}: {error}") from error
            except Unreadable as error:
                raise Unreadable(f"{name}: {error}") from error


def check_names(location: StoreLocation, names: Sequence[StoreFile]) -> None:
    """Raise NotAStore if none of these names is one that a broker's store has."""
    sentence = why_no_store(location, names)
    if sentence:
        raise NotAStore(sentence)


def why_no_store(location: StoreLocation, names: Sequence[StoreFile]) -> str:
    """Return a sentence on why the folder is no store, or "".

    It is a store if one of these names, directly under the root or in config/, is one that only a store has. A store of which all
    was deleted looks like any other folder here.

    Raises NotAStore if the folder is the inside of a store.
    """
    root = shown(location.root)
    if any(entry.path == UPLOAD_MARK for entry in names):
        return (
            f"{root}: {UPLOAD_MARK} is in it: the upload of this store has not ended, or was broken off; then remove all of it,"
            " and repeat the command"
        )
    if any(_shows_a_store(entry) for entry in names):
        return ""
    if not names:
        return f"{root}: an empty directory, not a RocketMQ store"
    if any(_SEGMENT_NAME.fullmatch(entry.path) for entry in names):
        raise NotAStore(f"{root}: this is a commitlog directory; name the store directory that holds it")
    sentence = f"{root}: no commitlog/, consumequeue/, index/, checkpoint or config/topics.json in it, so not a RocketMQ store"
    below = _stores_below(location, names)
    return f"{sentence}; name the store that is in it: {names_text(below)}" if below else sentence


def _shows_a_store(entry: StoreFile) -> bool:
    """Say whether only a store has something of this name."""
    if entry.path in (COMMITLOG, QUEUES, BATCH_QUEUES, INDEX, checkpoint_layout.CHECKPOINT_FILE):
        return True
    return bool(DLEDGER.fullmatch(entry.path) or _CONFIG_FILE.fullmatch(entry.path))


def _stores_below(location: StoreLocation, names: Sequence[StoreFile]) -> list[str]:
    """Return the folders directly below that are stores, of the first that there are."""
    found = []
    for entry in islice((entry for entry in names if entry.kind == "directory"), MOST_BELOW):
        path = f"{location.root.rstrip('/')}/{entry.path}"
        with can_do_without("a folder below one that is no store: it is only named"), suppress(StoreError):
            if any(_shows_a_store(inner) for inner in open_source(replace(location, root=path, parts=())).names()):
                found.append(shown(path))
    return found


def is_foreign(listing: StoreListing) -> bool:
    """Say whether the folder holds something, and nothing that a broker keeps in its store."""
    names = [entry.path for entry in listing.files if "/" not in entry.path]
    return bool(names) and not any(_LISTED.fullmatch(name) or _KNOWN.fullmatch(name) for name in names)


def unreadable_parts(listing: StoreListing) -> list[Gap]:
    """Return a gap for each name that a broker would read and that cannot be read here: the audit is incomplete by it."""
    found = []
    for entry in listing.files:
        top = entry.path.partition("/")[0]
        if entry.kind == "file" and entry.size and entry.path in (COMMITLOG, QUEUES, BATCH_QUEUES, EXT, INDEX):
            found.append(Gap(Cause.FILE_FOR_FOLDER, entry.path, (entry.size,)))
            continue
        if entry.kind not in UNREAD_KINDS or not (_LISTED.fullmatch(top) or top == checkpoint_layout.CHECKPOINT_FILE):
            continue
        if entry.kind == "unreadable":
            found.append(Gap(Cause.NOT_LISTED, entry.path))
        elif entry.kind == "special" and top == "config" and entry.path != top:
            continue  # the reader of config/ says so
        elif entry.kind == "special":
            found.append(Gap(Cause.NOT_REGULAR, entry.path))
        elif entry.path in PARTS:
            found.append(Gap(Cause.PART_LINK_OUT, entry.path))
        else:
            found.append(Gap(Cause.LINK_OUT, entry.path))
    return found


def listing_notes(listing: StoreListing) -> list[Finding]:
    """Return notes that names alone give: special files and links, and names under the root that no release writes.

    The release's rules say how a name inside commitlog/, index/ or a queue's folder affects load(), not these notes.
    """
    found = []
    words = {
        "link_out": "a link that leads out of the store or in a circle",
        "special": "not a file or a directory",
        "unreadable": "unreadable",
    }
    for entry in listing.files:
        if entry.kind in words:
            code = Code.FILE_UNREADABLE if entry.kind == "unreadable" else Code.FILE_NOT_REGULAR
            kind = words[entry.kind]
            found.append(Finding(code, entry.path, actual=kind, message=f"{entry.path}: {kind}; it was not opened."))
        elif "/" not in entry.path and not _LISTED.fullmatch(entry.path) and not _KNOWN.fullmatch(entry.path):
            sentence = f"{entry.path}: no release writes a file of this name."
            found.append(Finding(Code.FILE_UNRECOGNISED, entry.path, message=sentence))
    return found


def changes_since(listing: StoreListing) -> list[Gap]:
    """Return a gap for each file that came, went, or changed its length or time since the listing was made."""
    location = listing.location
    if not isinstance(location, DerivedLocation):  # the store that such a one is made of has an audit of its own
        location = replace(location, since=time.time_ns())
    try:
        if _same_names(listing, location):
            return []
        now = list_folder(location)
    except (NotAStore, Unreadable) as error:
        return [error.gap()]
    found = []
    for path in sorted(listing.by_path.keys() | now.by_path.keys()):
        before, after = listing.get(path), now.get(path)
        if before is None or after is None:
            found.append(Gap(Cause.APPEARED if before is None else Cause.VANISHED, path))
        elif _differ(before, after):
            found.append(Gap(Cause.CHANGED, path, (before.size, after.size)))
    return found


def _same_names(listing: StoreListing, location: StoreLocation) -> bool:
    """Say whether all is as it was, as listed at this location.

    Name by name: a second listing of a million files is never held.
    """
    count = 0
    for after in _names(location):
        before = listing.get(after.path)
        if before is None or _differ(before, after):
            return False
        count += 1
    return count == len(listing.files)


def _differ(before: StoreFile, after: StoreFile) -> bool:
    return before.kind != after.kind or (before.kind == "file" and (before.size, before.mtime_ns) != (after.size, after.mtime_ns))

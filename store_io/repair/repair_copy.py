"""The copy on which a repair works: every file and folder of the source, whatever an audit says of them (`copy_under_way`)."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from schemas.advice import Advice, Step
from schemas.finding_codes import Part
from schemas.layouts import rocksdb_layout
from schemas.layouts.checkpoint_layout import ABORT_FILE
from schemas.layouts.dledger_layout import DATA, FOLDER_PREFIX
from schemas.layouts.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES
from schemas.rows import StoreFile
from store_io.base.errors import StoreError
from store_io.base.failed_reads import every_read
from store_io.base.java.java_compat import parse_number
from store_io.broker.loading import Tree, numbered_files
from store_io.broker.settings.ledger_files import is_group, ledger_folders
from store_io.broker.settings.read_settings import read_settings
from store_io.kinds.compaction.compacted_queues import compacted_log
from store_io.model.facts.size_misfits import size_misfits
from store_io.repair.writing.store_writer import StoreWriter
from store_io.rocksdb.private_folder import is_database_name
from store_io.source.byte_source import ByteSource, StoreLocation, name_of, open_source, shown
from store_io.source.store_dir import list_store
from store_io.wording.steps import advice_text

_CORES = os.cpu_count() or 1
COPY_THREADS = max(2, min(4, _CORES), min(16, _CORES // 2))  # reading what is there by now takes the other half
ANOTHER_COPY = "find another copy of this broker's store and repair that one, a donor alone does not suffice"
SPARE_BYTES = 64 << 20  # beyond what is known to be needed


@every_read()
def check_source(location: StoreLocation, broker_conf: str | None) -> None:
    """Raise StoreError if a repair is pointless, or not written for the content of the store.

    It is pointless if no segment holds a byte, or no segment has the configured size.
    """
    listing = list_store(location)
    settings = read_settings(broker_conf, listing, open_source(location))
    if is_group(settings):
        raise StoreError(advice_text(Advice(Step.NO_LEDGER_REPAIR)))
    if compacted_log(listing):
        raise StoreError(advice_text(Advice(Step.NO_COMPACTED_REPAIR)))
    if settings["enableDLegerCommitLog"].value:
        if not any(numbered_files(Tree(listing.files), f"{folder}/{DATA}") for folder in ledger_folders(listing.files)):
            raise StoreError(f"nothing to repair from: {shown(location.root)} holds no data file of DLedger with bytes in it")
    elif not numbered_files(Tree(listing.files), COMMITLOG):
        parts = dict(location.parts).get(COMMITLOG) or (f"{location.root.rstrip('/')}/{COMMITLOG}",)
        raise StoreError(
            f"nothing to repair from: {' and '.join(map(shown, parts))} holds no segment with bytes in it; {ANOTHER_COPY}"
        )
    for misfit in size_misfits(broker_conf, listing, settings):
        if misfit.part is Part.LOG and not misfit.alone:
            raise StoreError(f"{misfit.sentence}. Audit the copy again with its own broker.conf, and repair by that plan")


@every_read()
def mode_beside(location: StoreLocation) -> int:
    """Return the widest permissions of a file with data of messages beside the new store.

    Who cannot read a segment of the source, by its mode or those of the folders around it, cannot read that file either. 0644 if
    the source has no modes.
    """
    source, mode = open_source(location), 0o644
    tops = [entry.path for entry in source.names() if entry.path == COMMITLOG or entry.path.startswith(FOLDER_PREFIX)]
    segments = [entry.path for top in tops for entry in source.walk_tree(top) if entry.kind == "file"]
    folders = {"", *(str(folder) for path in segments for folder in PurePosixPath(path).parents if folder.name)}
    for path in segments:
        mode &= _of_source(source, path)
    for path in folders:
        of_folder = _of_source(source, path)
        mode &= 0o600 | (0o070 if of_folder & stat.S_IXGRP else 0) | (0o007 if of_folder & stat.S_IXOTH else 0)
    return mode | 0o600


def _of_source(source: ByteSource, path: str) -> int:
    mode = source.mode(path)
    return 0o7777 if mode is None else mode


@dataclass(frozen=True)
class Copied:
    """The amount that was copied.

    files, bytes: how many.
    needed_bytes: of the medium, at most.
    not_copied: names that are no files.
    """

    files: int
    bytes: int
    needed_bytes: int
    not_copied: list[str]


@dataclass(frozen=True)
class CopyPlan:
    """The files to copy.

    by_path: the source's folders and regular files, with the times that the copy's files get.
    """

    source: ByteSource
    by_path: Mapping[str, StoreFile]
    copied: Copied

    @property
    def folders(self) -> list[str]:
        return [e.path for e in self.by_path.values() if e.kind == "directory"]

    @property
    def regular(self) -> list[StoreFile]:
        return [e for e in self.by_path.values() if e.kind == "file"]


def plan_copy(location: StoreLocation, writer: StoreWriter) -> CopyPlan:
    """Plan the copy of all that lies in the source.

    Raises StoreError if one CommitLog cannot be made of several folders, WriteFailed if too little is free.
    """
    source = open_source(location)
    files = _files(location, source)
    regular = [e for e in files.values() if e.kind == "file"]
    needed = _needed(source, files) + SPARE_BYTES
    writer.require(needed, "the copy needs")
    twins = sorted({e.path.partition("/")[0] for e in regular if e.path.startswith(f"{COMMITLOG}[")})
    if twins:
        raise StoreError(
            f"{twins[0]}: the same segment name in two CommitLog folders; name with --commitlog the one whose is right"
        )
    left = sorted(e.path for e in files.values() if e.kind not in ("file", "directory"))
    now = time.time_ns()  # for a file system that knows no times
    kept = {p: e if e.mtime_ns > 0 else replace(e, mtime_ns=now) for p, e in files.items() if e.kind in ("file", "directory")}
    return CopyPlan(source, kept, Copied(len(regular), sum(e.size for e in regular), needed, left))


def needed_bytes(location: StoreLocation) -> int:
    """Return the bytes that a repair of this copy takes of a medium at most. Raises StoreError."""
    source = open_source(location)
    return _needed(source, _files(location, source)) + SPARE_BYTES


def removed(location: StoreLocation, made: StoreLocation, moved: Container[str]) -> list[str]:
    """Return the names that the new store lacks; names that no broker writes come first.

    Left out are the abort marker, files of a queue or index that are made anew, and files that were only given another name
    (`moved`).
    """
    here, there = _files(location, open_source(location)), _files(made, open_source(made))
    gone = [e for e in here.values() if e.path not in there and e.path not in moved]
    holding = {str(folder) for e in here.values() if e.kind == "file" for folder in PurePosixPath(e.path).parents}
    names = [e.path for e in gone if e.kind == "file" and not _made_anew(e.path)]
    names += [e.path for e in gone if e.kind == "directory" and e.path not in holding]
    return sorted(names, key=lambda path: (_is_number(path), path))


def _made_anew(path: str) -> bool:
    """Say whether a start or a repair makes such a file anew: the report names the whole queue or index instead."""
    top, *names = path.split("/")
    databases = rocksdb_layout.FOLDER, rocksdb_layout.SEPARATE_FOLDER, rocksdb_layout.TABLES_FOLDER
    if top in databases and len(names) == 1 and is_database_name(names[0]):
        return True
    if top in (QUEUES, BATCH_QUEUES, EXT) and len(names) == 3:
        return _is_number(names[1]) and _is_number(names[2])
    return path == ABORT_FILE or top == INDEX and len(names) == 1 and _is_number(names[0])


def _is_number(path: str) -> bool:
    return parse_number(name_of(path), 64) is not None


@every_read()
def _files(location: StoreLocation, source: ByteSource) -> dict[str, StoreFile]:
    """Return all that lies in the source, by path."""
    files: dict[str, StoreFile] = {e.path: e for e in list_store(location).files}
    for entry in list(files.values()):
        if entry.kind == "directory" and "/" not in entry.path:  # folders that the audit knows by name alone
            files.update((e.path, e) for e in source.list_tree(entry.path))
    return files


def _needed(source: ByteSource, files: Mapping[str, StoreFile]) -> int:
    """Return how much of a medium a copy takes at most."""
    needed = 0
    for entry in files.values():
        if entry.kind == "file":
            with source.open(entry.path) as file:
                needed += file.allocated
    return needed

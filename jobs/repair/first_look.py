"""Settles the facts of a rescue before any work: the new store's place, and the rules for the copy.

Whether there is room, and whether a broker still writes to the copy, is asked too. Release and settings are named, seen in the
files if these leave one answer, or asked for.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.audit.copy_at_rest import broker_signs, refused
from jobs.cli import argument_places
from jobs.cli.option_values import release as read_release
from jobs.cli.options import Command
from jobs.cli.start_options import asked_start
from jobs.cli.stores import StoreArgument, named_stores
from jobs.repair.disk_of_target import on_its_disk
from jobs.repair.repair_request import donor_of, target_of
from jobs.report.texts.text import printable
from jobs.runtime.output import OutputFolder
from schemas.first_day import StartMoment
from schemas.rows import NAMED
from store_io.audit.compared.compared_audit import Detected, detect_release
from store_io.base.errors import StoreError, UsageError
from store_io.base.paths import is_uri
from store_io.base.wording import bytes_text, names_text
from store_io.model.premises import assumed_sentence
from store_io.repair.repair_copy import needed_bytes
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import list_store

NEW, FOLDER = "-rescued", ".rescue"
_NO_CONF = (
    "No broker.conf was named: sizes, and what else the copy's files show, are taken from them, RocketMQ's defaults for all other"
    " settings. Name the broker's own with --broker-conf if you have it: it decides what a start reads."
)


@dataclass(frozen=True)
class AskedRescue:
    """The copy to be rescued, and the way of the rescue.

    target: the new store.
    folder: for the audit's results.
    donor: another copy.
    assumed: sentences on facts that nobody named.
    warnings: reasons to doubt the copy.
    needed, free: bytes at the target.
    start: of the broker, on the target's disk.
    """

    store: StoreArgument
    target: str
    donor: StoreLocation | None
    assumed: tuple[str, ...]
    warnings: tuple[str, ...]
    needed: int
    free: int
    start: StartMoment

    @property
    def folder(self) -> str:
        return self.target + FOLDER

    @property
    def location(self) -> StoreLocation:
        return StoreLocation(self.store.path, self.store.parts)

    def output(self) -> OutputFolder:
        """Return the folder of the audit's results."""
        return OutputFolder(self.folder)


def first_look(command: Command) -> AskedRescue:
    """Settle it all. Raises UsageError for what must be named or cannot be meant, StoreError for what cannot be done."""
    if len(command.arguments) != 1:
        raise UsageError(f"rescue takes one COPY, the folder that holds commitlog/; {len(command.arguments)} were given")
    given = dict(command.options)
    copy = argument_places.absolute(command.arguments[0])
    if "--to" not in given:
        if is_uri(copy):
            raise UsageError(f"--to NEW is missing: {copy!r} is no folder of this machine, so name where the new store shall lie")
        given["--to"] = copy.rstrip("/") + NEW
    bare = named_stores([copy], {name: value for name, value in given.items() if name not in ("--release", "--broker-conf")})[0]
    target = target_of(given["--to"], bare)
    location = StoreLocation(bare.path, bare.parts)
    listing = list_store(location)  # raises where there is no store
    signs = broker_signs(bare.path, listing.files)
    if signs.held:
        raise StoreError(refused(signs, "rescue"))
    warnings = tuple(f"{said}. Rescue a copy that nothing writes to." for said in signs.sentences())
    if "--broker-conf" not in given and (conf := _ask_for_conf()):
        given["--broker-conf"] = conf
    store, assumed = _with_release(copy, given)
    donor = donor_of(given["--donor"], location, target) if "--donor" in given else None
    needed, free = needed_bytes(location), _free_bytes(target)
    if needed > free:
        raise StoreError(
            f"--to {given['--to']!r}: the new store needs up to {needed:,} bytes ({bytes_text(needed)}), and {free:,}"
            f" ({bytes_text(free)}) are free there; make room, or name a folder on another disk with --to"
        )
    start = on_its_disk(asked_start(given).moment(time.time_ns(), decided=True), target, needed, location)
    return AskedRescue(store, target, donor, assumed, warnings, needed, free, start)


def _free_bytes(target: str) -> int:
    status = os.statvfs(os.path.dirname(target))
    return status.f_bavail * status.f_frsize


# ---- release and settings ----------------------------------------------------------------------------------------------


def _ask_for_conf() -> str:
    """Ask the person at the terminal for the broker.conf; "" if nobody sits there, or there is none."""
    if not sys.stdin.isatty():
        return ""
    print("  the broker's own properties file decides what its recovery reads", file=sys.stderr)
    return _read("The broker's properties file (broker.conf), or nothing if there is none")


def _with_release(copy: str, given: Mapping[str, Any]) -> tuple[StoreArgument, tuple[str, ...]]:
    """Return (the store with its release, the assumptions about it). Raises UsageError if the release must be named."""
    store = named_stores([copy], given)[0]
    if "--release" in given:
        return store, () if store.release_from == NAMED else (f"{assumed_sentence(store.release, store.release_from)}.",)
    seen = detect_release(StoreLocation(store.path, store.parts), store.broker_conf)
    if seen.release:
        sentence = f"No release was named: by its files this copy was {seen.written.sentence()}"
        if len(seen.among) > 1:
            sentence += f"; {names_text(seen.among, len(seen.among))} do the same with it"
        return named_stores([copy], {**given, "--release": seen.release})[0], (f"{sentence}.",)
    named = _answer("The broker's RocketMQ release", "--release X", f"{_said(seen)}; name the broker's own")
    return named_stores([copy], {**given, "--release": _release(named)})[0], ()


def _said(seen: Detected) -> str:
    """Return a clause on the release that the files show, if that is not enough."""
    sentence = seen.written.sentence()
    return f"by its files the copy was {sentence}" if sentence else "nothing in the copy shows which release wrote it"


def _release(text: str) -> str:
    try:
        return read_release(text)
    except UsageError as problem:
        raise UsageError(f"--release {text!r}: {problem}") from None


def _answer(question: str, option: str, hint: str) -> str:
    """Ask a person. Raises UsageError, which names the option, if nobody sits there, or nothing is answered."""
    text = ""
    if sys.stdin.isatty():
        print(f"  {printable(hint)}", file=sys.stderr)
        text = _read(question)
    if not text:
        raise UsageError(f"{option} is missing: {hint}")
    return text


def _read(question: str) -> str:
    print(f"{question}: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def agreed(question: str) -> bool:
    """Ask the person at the terminal; False if nobody sits there."""
    return sys.stdin.isatty() and _read(f"{question} (yes or no)").lower() in ("y", "yes")


def first_lines(asked: AskedRescue) -> Iterator[str]:
    """Yield the lines before any work: the assumptions, and whether there is room."""
    for warning in asked.warnings:
        yield f"Warning: {warning}"
    for sentence in asked.assumed:
        yield f"Assumed: {sentence}"
    if asked.store.broker_conf is None:
        yield f"Assumed: {_NO_CONF}"
    yield f"Space: {bytes_text(asked.needed)} needed at most, {bytes_text(asked.free)} free at {printable(asked.target)}"

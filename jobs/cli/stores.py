"""The stores that a command line or a fleet file names. Standard library only."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobs.cli.argument_places import absolute, folder_name, last_part, read_broker_conf, read_regular, reason_of
from jobs.cli.option_values import ALL_RELEASES, near, release, releases
from jobs.cli.start_options import FLEET_KEYS, NOTHING_ASKED, AskedStart, asked_start, start_of_row
from store_io.base.errors import UsageError, parsed
from store_io.broker.releases import NEWEST_RELEASE, known_release

FLEET_BYTES = 16 << 20
PARTS = ("commitlog", "consumequeue", "index")
RESULT, INDEX, REPLICAS = "result.json", "index.html", "replicas.json"
# What `--out` holds beside the stores' own folders, with all of `_TEMPORARY`: names of `jobs.runtime.output`.
TAKEN_NAMES = ("tables", ".", "..", RESULT, INDEX, REPLICAS, ".lock", "run.lock", "")
_TEMPORARY = re.compile(r"\..*\.writing")
_FLEET_KEYS = frozenset({"name", "path", "release", "broker_conf", "replica_group", *PARTS, *FLEET_KEYS})


@dataclass(frozen=True)
class StoreArgument:
    """One store to audit.

    name: its folder under --out, unique in the run.
    path: an absolute path, or a URI other than file:.
    broker_conf: the properties file's text, None without one; broker_conf_file: the file from which it was read.
    named: whether a person gave it its name; else its folder did.
    parts: ("commitlog", (path, ...)) and the others of PARTS that lie elsewhere.
    problem: one sentence on why it cannot be audited at all (a bad row of a fleet file); then it earns 3.
    """

    name: str
    path: str
    release: str = NEWEST_RELEASE
    broker_conf: str | None = None
    replica_group: str | None = None
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    problem: str | None = None
    broker_conf_file: str | None = None
    release_from: str = "named"  # or "default": none was named; else the number that was named and is not known
    named: bool = False
    releases: tuple[str, ...] = ()  # to compare; () none
    again: int = 1  # which of the run's stores at this path it is, counted from 1
    start: AskedStart = NOTHING_ASKED  # of its broker

    @property
    def roots(self) -> list[str]:
        """Return the folders that hold the store: its own, and those of parts that lie elsewhere."""
        return [self.path, *(folder for _, folders in self.parts for folder in folders)]

    @property
    def key(self) -> str:
        """Return the store's key in the tables and data sources: the name that a person gave it, else its place.

        The key is the same in every run. Names of folders are often alike. Bytes of a path that are no UTF-8 are escaped, as in
        the tables.
        """
        if self.named:
            return self.name
        place = self.path.encode("utf-8", "backslashreplace").decode()
        return place if self.again == 1 else f"{place}#{self.again}"


def named_stores(paths: Sequence[str], options: Mapping[str, Any], several: bool = False) -> list[StoreArgument]:
    """Return the stores at these paths, read as the options say. Names are not unique yet. Raises UsageError.

    several: several releases may be named.
    """
    elsewhere = [f"--{part}" for part in PARTS if f"--{part}" in options]
    if elsewhere and len(paths) > 1:
        raise UsageError(f"{elsewhere[0]} works with one store only; use --fleet for several")
    conf = _broker_conf(options["--broker-conf"], "--broker-conf") if "--broker-conf" in options else {}
    parts = tuple((option.removeprefix("--"), _part_paths(options[option], option)) for option in elsewhere)
    if not all(paths):
        raise UsageError("an empty store path")
    shared = {**_release_of(options, several), **conf, "parts": parts, "start": asked_start(options)}
    return [StoreArgument(last_part(path), path, **shared) for path in map(absolute, paths)]


def _release_of(options: Mapping[str, Any], several: bool = False) -> dict[str, Any]:
    """Return the release that --release names, and those to compare it with, as fields of a store.

    several: a list is taken, too, whose first is the store's own, or "all", which names none.
    """
    if "--release" not in options:
        return {"release_from": "default"}
    text = options["--release"]
    if not several:
        return _known(text)
    found = releases(text)
    own = {"release_from": "default"} if text.strip() == ALL_RELEASES else _known(found[0])
    compared = tuple(dict.fromkeys((own["release"], *found[1:]))) if "release" in own else found
    return {**own, "releases": compared} if len(compared) > 1 else own


def _known(text: str) -> dict[str, Any]:
    """Return a release that was named, or the known one whose rules are taken for it. Raises UsageError."""
    named, known = release(text), known_release(text)
    return {"release": known, "release_from": "named" if known == named else named}


def read_fleet_file(path: str, options: Mapping[str, Any]) -> list[StoreArgument]:
    """Return the stores of a fleet file; the command line's release applies to a row that names none. Names are not unique yet.

    Raises UsageError if the file cannot be read, is no TOML, or has no [[store]] table: then no store is known; also for a bad
    moment or disk of a start. Any other fault of a row becomes that store's `problem`.
    """
    try:
        content = read_regular(path, FLEET_BYTES)
    except (OSError, ValueError) as problem:
        raise UsageError(f"--fleet {path!r}: {reason_of(problem)}") from None
    try:
        rows = parsed(tomllib.loads, content.decode("utf-8")).get("store")
    except ValueError as problem:
        raise UsageError(f"--fleet {path!r}: no TOML: {problem}") from None
    if not isinstance(rows, list) or not rows:
        raise UsageError(f"--fleet {path!r}: no [[store]] table in it")
    start, base, release_asked = asked_start(options), os.path.dirname(path), _release_of(options, True)
    return [
        replace(_fleet_row(row, number, base, release_asked), start=_start_of(row, number, start))
        for number, row in enumerate(rows, 1)
    ]


def _start_of(row: Any, number: int, otherwise: AskedStart) -> AskedStart:
    try:
        return start_of_row(row, otherwise) if isinstance(row, dict) else otherwise
    except UsageError as problem:
        raise UsageError(f"store {number} of the fleet file: {problem}") from None


def _fleet_row(row: Any, number: int, base: str, asked: Mapping[str, Any]) -> StoreArgument:
    store = StoreArgument(f"store-{number}", "", **asked)
    if not isinstance(row, dict):
        return replace(store, problem=f"store {number} of the fleet file is no table")
    name = row.get("name")
    if isinstance(name, str) and name:
        store = replace(store, name=name)
    try:
        for key, value in row.items():
            if key not in _FLEET_KEYS:
                raise UsageError(f"unknown key {key!r}{near(key, _FLEET_KEYS)}")
            if key in FLEET_KEYS:
                continue
            listed = key in PARTS and isinstance(value, list) and value and all(isinstance(v, str) and v for v in value)
            if not listed and (not isinstance(value, str) or not value):
                raise UsageError(f"{key} must be a text that is not empty")
        if "path" not in row:
            raise UsageError("path is missing")
        path = absolute(row["path"], base)
        store = replace(store, name=name or last_part(path), path=path, replica_group=row.get("replica_group"), named=bool(name))
        if "release" in row:
            store = replace(store, **_one_release(row["release"]))
        texts = {part: row[part] if isinstance(row[part], str) else ",".join(row[part]) for part in PARTS if part in row}
        store = replace(store, parts=tuple((part, _part_paths(text, part, base)) for part, text in texts.items()))
        if "broker_conf" in row:
            store = replace(store, **_broker_conf(row["broker_conf"], "broker_conf", base))
    except UsageError as problem:
        return replace(store, problem=f"store {number} of the fleet file: {problem}")
    return store


def _one_release(text: str) -> dict[str, Any]:
    if text.strip() == ALL_RELEASES or "," in text:
        raise UsageError(f"release {text!r}: a row names one release; for several use --release {text} on the command line")
    return _known(text)


def _broker_conf(text: str, where: str, base: str | None = None) -> dict[str, Any]:
    """Return the fields of a StoreArgument that come from this properties file."""
    path = absolute(text, base)
    try:
        return {"broker_conf": read_broker_conf(path), "broker_conf_file": path}
    except (OSError, ValueError) as problem:
        raise UsageError(f"{where} {text!r}: {reason_of(problem)}") from None


def _part_paths(text: str, where: str, base: str | None = None) -> tuple[str, ...]:
    paths = [path.strip() for path in text.split(",")]
    if not all(paths):
        raise UsageError(f"{where} {text!r}: an empty path in the list")
    return tuple(absolute(path, base) for path in paths)


def with_unique_names(stores: Sequence[StoreArgument]) -> list[StoreArgument]:
    """Return these stores, named by their folders under --out."""
    taken = set(TAKEN_NAMES)
    places: Counter[str] = Counter()
    named = []
    for store in stores:
        wanted = name = folder_name(store.name)
        number = 2
        while name in taken or _TEMPORARY.fullmatch(name):
            name = f"{wanted}-{number}"
            number += 1
        taken.add(name)
        given = store.named and name == wanted
        places[store.path] += not given
        named.append(replace(store, name=name, named=given, again=max(1, places[store.path])))
    return named

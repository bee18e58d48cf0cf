"""The corpus of real stores: what there is, and unpacking it.

    python -m tests.support.stores.corpus_tools DEST [PREFIX ...]

writes DEST/<case>/store, DEST/<case>/broker.conf, DEST/fleet.toml (each store under the release that recovered it) and
DEST/fleet-matrix.toml (each store under every other release that was tried on it, named <case>.r<release>).

The environment variable CORPUS_ALSO names a further folder of cases of the same shape (`.gz` for `.xz` is understood): the
tests over the corpus then run over those too.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests import TESTS

CORPUS = TESTS / "corpus"


def extract(archive: Path, destination: Path) -> None:
    """Unpack a tar of the tests' own; the first Pythons of 3.11 do not know extraction filters."""
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(destination, filter="data")
        else:
            tar.extractall(destination)


@dataclass(frozen=True)
class Case:
    """One real store and what real brokers did with it."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def case(self) -> dict[str, Any]:
        """case.json: `version` (release that recovered it), `writeVersion`, `mutations`, `abortPresent`, `filesBefore`..."""
        return dict(json.loads((self.folder / "case.json").read_text(encoding="utf-8")))

    @property
    def release(self) -> str:
        return str(self.case["version"])

    @cached_property
    def broker_conf(self) -> str:
        conf = self.folder / "broker.conf"
        if conf.exists():
            return conf.read_text(encoding="utf-8")
        settings = ((name.split(".", 1), value) for name, value in self.case["config"].items())
        return "".join(f"{name[1]}={value}\n" for name, value in settings if name[0] in ("store", "broker"))

    @property
    def has_ledger(self) -> bool:
        """Whether its log is DLedger's: no plain CommitLog alone, and no repair writes it."""
        return "enableDLegerCommitLog=true" in self.broker_conf

    @cached_property
    def expected(self) -> dict[str, Any]:
        return dict(json.loads(self._read("expected.json") or b"{}"))

    @cached_property
    def other_versions(self) -> dict[str, Any]:
        """Release -> what it did with this store, in short; only those that could be tried."""
        found = json.loads(self._read("other_versions.json") or b"{}")
        return {release: said for release, said in found.items() if "oracleFailed" not in said}

    def entries(self, moment: str = "load") -> list[dict[str, Any]] | None:
        """All ConsumeQueue and index entries at "load" or "converged"; None where none were recorded."""
        data = self._read(f"entries.{moment}.jsonl")
        return None if data is None else [json.loads(line) for line in data.splitlines()]

    def unpack(self, destination: Path) -> Path:
        """Unpack the store below `destination`, holes as holes. Returns its root."""
        destination.mkdir(parents=True, exist_ok=True)
        name = next(n for n in ("store.tar.xz", "store.tar.gz") if (self.folder / n).exists())
        extract(self.folder / name, destination)
        (destination / "broker.conf").write_text(self.broker_conf, encoding="utf-8")
        return destination / "store"

    def tar_digest(self) -> str:
        """SHA-256 of the tar inside."""
        return hashlib.sha256(self._read("store.tar") or b"").hexdigest()

    def _read(self, name: str) -> bytes | None:
        plain, xz, gz = self.folder / name, self.folder / f"{name}.xz", self.folder / f"{name}.gz"
        if xz.exists():
            return lzma.decompress(xz.read_bytes())
        if gz.exists():
            return gzip.decompress(gz.read_bytes())
        return plain.read_bytes() if plain.exists() else None


def cases(*prefixes: str) -> list[Case]:
    """All cases whose name begins with one of the prefixes (all without any), ours first, by name."""
    folders = [CORPUS]
    if os.environ.get("CORPUS_ALSO"):
        folders.append(Path(os.environ["CORPUS_ALSO"]))
    found: dict[str, Case] = {}
    for folder in folders:
        for path in sorted(folder.iterdir()):
            if (path / "case.json").exists() and path.name.startswith(prefixes or ""):
                found.setdefault(path.name, Case(path))
    return list(found.values())


def of_kind(kind: str) -> list[Case]:
    """The cases of another kind of store, by name: "rocksdb"."""
    return [Case(path) for path in sorted((CORPUS / "kinds" / kind).iterdir()) if (path / "case.json").exists()]


def plain_cases(*prefixes: str) -> list[Case]:
    """Those of `cases` whose log is a plain CommitLog."""
    return [case for case in cases(*prefixes) if not case.has_ledger]


def manifest() -> dict[str, tuple[str, str, str, str]]:
    """Name -> (release that recovered it, release that wrote it, digest of the tar, story)."""
    lines = (CORPUS / "MANIFEST").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {name: (release, written_by, digest, story) for name, release, written_by, digest, story in rows}


def fleet_rows(case: Case) -> Iterator[tuple[bool, str]]:
    """(whether it belongs to the matrix, a [[store]] table) for the case and each other release."""
    for release in (case.release, *case.other_versions):
        other = release != case.release
        name = f"{case.name}.r{release}" if other else case.name
        yield (
            other,
            (
                f'[[store]]\nname = "{name}"\npath = "{case.name}/store"\n'
                f'release = "{release}"\nbroker_conf = "{case.name}/broker.conf"\n'
            ),
        )


def main(arguments: list[str]) -> None:
    destination = Path(arguments[0])
    rows = []
    for case in cases(*arguments[1:]):
        case.unpack(destination / case.name)
        rows += list(fleet_rows(case))
    (destination / "fleet.toml").write_text("\n".join(row for other, row in rows if not other), encoding="utf-8")
    (destination / "fleet-matrix.toml").write_text("\n".join(row for other, row in rows if other), encoding="utf-8")
    print(f"{sum(not other for other, _ in rows)} stores in {destination}, {sum(other for other, _ in rows)} further pairs")


if __name__ == "__main__":
    main(sys.argv[1:])

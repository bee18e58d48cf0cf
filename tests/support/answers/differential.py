"""Random damaged stores: the product's plan against the second witness.

    python -m tests.support.answers.differential --stores 3000 --seed 1

Builds small random stores, damages each in several ways, picks a release and settings, and compares what the plan says of
the broker (whether it starts, start segment, cut, deleted files, the states after load and after dispatch) and the predicted
ConsumeQueue and index entries after load. Prints figures, and for every disagreement the seed, the store and the damage,
with every damage left out that it does not need. Exits 1 if there was one.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.answers import product
from tests.support.answers.promises import broken_promises
from tests.support.second_witness import broker as witness
from tests.support.stores.random_stores import RandomStore, random_store

SECONDS_PER_STORE = 20  # of the processor; an audit of such a store takes milliseconds, the first one compiles
COMPARED = ("start_segment", "min_phy_offset", "truncate_at", "deleted_files")
MOMENTS = ("after_load", "after_dispatch")


def plan_differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Sentences, one per field of the plan's broker section that the two tell differently."""
    if ours["starts"] != theirs["starts"]:
        return [f"starts: ours {ours['starts']} ({ours['refusal']}), the witness's {theirs['starts']} ({theirs['refusal']})"]
    if ours["exit"] != theirs["exit"]:
        return [f"exit: ours {ours['exit']}, the witness's {theirs['exit']}"]
    if not ours["starts"]:
        return [] if ours["refusal"] else ["refusal: no sentence"]
    # The witness leaves out what recovery does to ext files.
    ours, theirs = (
        {**side, "deleted_files": [name for name in side["deleted_files"] if not name.startswith("consumequeue_ext/")]}
        for side in (ours, theirs)
    )
    found = [f"{name}: ours {ours[name]!r}, the witness's {theirs[name]!r}" for name in COMPARED if ours[name] != theirs[name]]
    for moment in MOMENTS:
        for part in ("commitlog", "index"):
            if ours[moment][part] != theirs[moment][part]:
                found.append(f"{moment}.{part}: ours {ours[moment][part]}, the witness's {theirs[moment][part]}")
        mine, real = ({(q["topic"], q["queue_id"]): q for q in side[moment]["queues"]} for side in (ours, theirs))
        for key in sorted(mine.keys() | real.keys()):
            if mine.get(key) != real.get(key):
                found.append(f"{moment}.queue {key}: ours {mine.get(key)}, the witness's {real.get(key)}")
    return found


def entry_differences(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], ext: bool) -> list[str]:
    """Entries that only one side has. ext: the witness does not append ext units, so tags codes are left out."""

    def lines(entries: list[dict[str, Any]]) -> Counter[str]:
        hidden = ("xc", "xt", "c") if ext else ()
        return Counter(json.dumps({k: v for k, v in e.items() if k not in hidden}, sort_keys=True) for e in entries)

    mine, real = lines(ours), lines(theirs)
    found = []
    for who, only in (("ours", mine - real), ("the witness's", real - mine)):
        if only:
            found.append(f"entries only {who}: {sum(only.values())}, first {min(only)}")
    return found


def compare(made: RandomStore) -> tuple[list[str], dict[str, Any]]:
    """(disagreements, the witness's plan) of one store under its release and settings."""
    theirs, entries = witness.run(made.store.root, made.release, made.broker_conf)
    before = signal.signal(signal.SIGVTALRM, _too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_PER_STORE)
    try:
        audit = product.audit(made.store.root, made.release, made.broker_conf)
        if audit.broker is None:
            return [f"no broker section: {audit.incomplete}"], theirs
        found = plan_differences(audit.broker, theirs)
        found += broken_promises(made.store.root, audit.outcome)
        if not found and entries is not None:
            found += entry_differences(audit.entries(), entries, "enableConsumeQueueExt=true" in made.broker_conf)
    except Exception:
        return ["the audit raised: " + " | ".join(traceback.format_exc().splitlines()[-5:])], theirs
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return found, theirs


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"no answer within {SECONDS_PER_STORE} s")


@dataclass
class Figures:
    """What a run met."""

    stores: int = 0
    refused: int = 0
    cut: int = 0
    damages: int = 0
    releases: set[str] = field(default_factory=set)
    disagreements: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.stores} stores, {self.damages} damages, {len(self.releases)} releases, {self.refused} refused to start, "
            f"{self.cut} cut before the last record: {len(self.disagreements)} disagreements, {self.seconds:.1f} s"
        )


def one_store(seed: str, folder: Path, without: frozenset[int] = frozenset()) -> RandomStore:
    """The store of this seed; `without`: numbers of damages that are left out."""
    shutil.rmtree(folder, ignore_errors=True)
    return random_store(folder, random.Random(seed), without=without)


def smallest(seed: str, folder: Path, count: int) -> frozenset[int]:
    """As many damages left out as still leave a disagreement."""
    without: frozenset[int] = frozenset()
    for number in range(count):
        if compare(one_store(seed, folder, without | {number}))[0]:
            without |= {number}
    return without


def run(stores: int, seed: int, first: int = 0, verbose: bool = True) -> Figures:
    """Compare `stores` random stores; each follows from (seed, its number) alone."""
    figures, began = Figures(), time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "store"
        for number in range(first, first + stores):
            name = f"{seed}/{number}"
            made = one_store(name, folder)
            found, theirs = compare(made)
            figures.stores += 1
            figures.damages += len(made.done)
            figures.releases.add(made.release)
            figures.refused += not theirs["starts"]
            records = made.store.records
            figures.cut += bool(theirs["starts"] and records and theirs["truncate_at"] < records[-1].at + records[-1].size)
            if found:
                made = one_store(name, folder, smallest(name, folder, made.tried))
                found, _ = compare(made)
                text = f"{name}: {made.describe()}\n" + "".join(f"    {line[:600]}\n" for line in found[:4])
                figures.disagreements.append(text)
                if verbose:
                    print(text, flush=True)
    figures.seconds = time.monotonic() - began
    return figures


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.answers.differential", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--stores", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first store: repeats one that disagreed")
    parser.add_argument("--keep", type=Path, help="write the store of --first there and stop")
    given = parser.parse_args(arguments)
    if given.keep:
        made = one_store(f"{given.seed}/{given.first}", given.keep)
        given.keep.with_suffix(".conf").write_text(made.broker_conf)
        print(made.describe())
        return 0
    figures = run(given.stores, given.seed, given.first)
    print(figures)
    return 1 if figures.disagreements else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

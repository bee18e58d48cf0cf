"""Measure: make sample stores, run what an audit runs over them, and print one table with the limits beside the figures.

A figure holds for the machine it was measured on, a ratio for others too: both sides of it are measured in turns over the same
bytes. Whatever else runs on the machine makes them worse, never better.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dev import ratios, this_machine
from dev.bench_stores import BODIES, BenchFailed, can_write, scratch_folder, write_store
from dev.cold import cold_runs, measure_cold
from dev.figures import (
    FLOOR,
    Figure,
    audit_figures,
    cold_figures,
    command_figure,
    kind_figures,
    load_figures,
    peak_figure,
    peer_figures,
    question_figures,
    repair_figures,
    scale_figures,
    scan_figures,
    session_figure,
    table,
)
from dev.measures import (
    AuditTimes,
    KindTimes,
    measure_audits,
    measure_command,
    measure_kind,
    measure_peak,
    measure_repair,
    measure_scans,
)
from dev.peers import measure_loads, release_of
from dev.questions import measure_questions
from dev.sample_kinds import CONF, KINDS, TIMERS
from dev.sample_store import SampleStore
from dev.scale import SHAPES, measure_scale
from jobs.cli import argument_places, parser
from jobs.cli.options import Command
from store_io.base.errors import UsageError
from store_io.base.wording import bytes_text

REPAIRED_BODIES = (200, 1024, 4096, 16384)
PARTS = ("scan", "audit", "datasets", "memory", "command", "cold")  # all others: where they are asked for
SEGMENT_BYTES = 1 << 30
TIMERS_PER_GIB = 200_000
LARGE_BYTES, SMALL_BYTES = 2 << 30, 256 << 20  # segments whose scans are compared for memory
_GIB = 1 << 30
SMALL_STORE = SampleStore([200, 1024], segment_bytes=1 << 20, index_slots=10_000, index_max=40_000, topics=2, queues=4)


@dataclass(frozen=True)
class Asked:
    """The measurements to make. Sizes in bytes.

    directory: the place of the stores for the time being.
    """

    size: int
    audit_size: int
    kinds_size: int
    large: int
    directory: str | None
    keep: bool
    rounds: int
    parts: frozenset[str]
    compare: str | None = None
    write: str | None = None
    peers: str | None = None  # a folder of a release's jars
    shapes: tuple[str, ...] = ()  # of the part "scale"
    part: float = 1.0  # of each of them


def run(command: Command) -> int:
    """Measure and print the table. Returns 0 whether or not all limits are met, with --compare 1 if a ratio has become worse.

    Raises UsageError, BenchFailed.
    """
    asked = asked_of(command)
    before = ratios.of_processor(asked.compare, this_machine.kind()) if asked.compare else {}
    if asked.write and os.path.exists(asked.write):
        ratios.read(asked.write)  # before it is measured for minutes: another kind of file is not written over
    with scratch_folder(asked.directory, asked.keep) as folder:
        _check_room(asked, folder)
        print(this_machine.machine_text(), flush=True)
        figures = measure(asked, folder, list(command.spark))
        print(table(figures), flush=True)
        if asked.keep:
            print(f"The stores are kept in {folder}")
    measured = {figure.name: float(figure.ratio) for figure in figures if figure.ratio and figure.ratio != FLOOR}
    if asked.write:
        ratios.write(asked.write, this_machine.kind(), measured)
    if not asked.compare:
        return 0
    text, worse = ratios.compared(before, measured)
    print(f"\n{text}", flush=True)
    return int(worse)


def asked_of(command: Command) -> Asked:
    """Return the measurements of a command line. Raises UsageError."""
    if command.arguments:
        raise UsageError(f"bench: unrecognized argument {command.arguments[0]!r}")
    given = command.options
    defaults = (("--size", 3.0), ("--audit-size", 1.5), ("--kinds-size", 1.0), ("--large", 2.0))
    size, audit_size, kinds_size, large = (int(given.get(name, default) * _GIB) for name, default in defaults)
    rounds = given.get("--rounds", 5)
    if min(size, audit_size, kinds_size, large) < 1 << 20 or rounds < 1:
        raise UsageError("bench: sizes are at least 0.001 GiB, rounds at least 1")
    parts = given.get("--only", frozenset(PARTS))
    compare, write, peers = [
        argument_places.absolute(given[name]) if name in given else None for name in ("--compare", "--write", "--peers")
    ]
    other = next((name for name in (*dict(defaults), "--part") if name in given), None)
    if other and (compare or write):
        raise UsageError(f"bench: kept ratios are of the usual sizes, so {other} does not go with --compare or --write")
    if peers is not None:
        release_of(Path(peers))
    chosen, part = given.get("--shapes", frozenset(SHAPES)), given.get("--part", 1.0)
    if not 0 < part <= 1000:
        raise UsageError("bench: --part is a number above 0, of at most 1000")
    shapes, keep = tuple(shape for shape in SHAPES if shape in chosen), "--keep" in command.flags
    return Asked(
        size, audit_size, kinds_size, large, given.get("--dir"), keep, rounds, parts, compare, write, peers, shapes, part
    )


def measure(asked: Asked, folder: Path, spark_words: list[str]) -> list[Figure]:
    """Return all parts that were asked for, in the order of the table. Stores that are not needed any more are removed."""
    from jobs.runtime import session
    from jobs.runtime.jvm import Jvm

    own_words = spark_words
    if parser.spark_setting(spark_words, "spark.master", "--master") is None:
        spark_words = [*spark_words, "--master", f"local[{min(2, os.cpu_count() or 1)}]"]
    figures: list[Figure] = []
    if "scan" in asked.parts:
        store = scan_store(asked.size)
        root = _make(folder, "scan", store, asked)
        for times in measure_scans(root, store.bodies, asked.rounds):
            figures += scan_figures(times)
        _drop(root, asked)
    if "kinds" in asked.parts:
        figures += kind_figures(_kinds(folder, asked))
    if "repair" in asked.parts:
        for body in REPAIRED_BODIES:
            root = _make(folder, f"damaged-{body}", audit_store(asked.audit_size, body), asked)
            jars = Path(asked.peers) if asked.peers else None
            repaired = measure_repair(root, body, own_words, asked.rounds, jars)
            figures += repair_figures(repaired)
            if repaired is not None and jars is not None:
                figures += load_figures(repaired, release_of(jars))
            _drop(root, asked)
    if "scale" in asked.parts:
        with session.on(Jvm(spark_words)) as started:
            for shape in asked.shapes:
                figures += scale_figures(measure_scale(started, folder / f"scale-{shape}", shape, asked.part))
                _drop(folder / f"scale-{shape}", asked)
    audited: Path | None = None
    done: AuditTimes | None = None
    if asked.peers or {"audit", "datasets", "command", "cold", "table"} & asked.parts:
        audited = _make(folder, "audited", audit_store(asked.audit_size), asked)
    if {"audit", "datasets", "memory"} & asked.parts:
        began = time.perf_counter()
        with session.on(Jvm(spark_words)) as started:
            figures.append(session_figure(time.perf_counter() - began))
            if audited is not None and {"audit", "datasets"} & asked.parts:
                done = measure_audits(started, audited, folder / "out", asked.rounds, "datasets" in asked.parts)
                figures += audit_figures(done, asked.audit_size)
            if "memory" in asked.parts:
                for size in (SMALL_BYTES * asked.large // LARGE_BYTES, asked.large):
                    large = _make(folder, f"memory-{size}", SampleStore([BODIES[1]], segment_bytes=size), asked)
                    figures.append(peak_figure(size, measure_peak(started, large)))
                    _drop(large, asked)
    if audited is not None and "command" in asked.parts:
        seconds = measure_command(audited, folder / "command", spark_words, min(3, asked.rounds))
        figures.append(command_figure(asked.audit_size, seconds))
    if audited is not None and "cold" in asked.parts:
        small = _make(folder, "small", SMALL_STORE, asked)
        figures += cold_figures(measure_cold(cold_runs(small, audited, folder / "cold", own_words), asked.rounds))
    if audited is not None and "table" in asked.parts:
        with session.start(spark_words) as started:
            figures += question_figures(measure_questions(started, audited, asked.rounds))
    if audited is not None and asked.peers:
        loads = measure_loads(audited, Path(asked.peers), folder, min(2, asked.rounds))
        figures += peer_figures(loads, asked.audit_size, done.audit if done else None)
    return figures


def _kinds(folder: Path, asked: Asked) -> Iterator[KindTimes | str]:
    """Yield the times of each kind, one store after the other; the name of one that cannot be made here."""
    for kind in KINDS:
        store = kind_store(asked.kinds_size, kind)
        if not can_write(store):
            yield kind
            continue
        root = _make(folder, kind, store, asked)
        yield measure_kind(root, kind, CONF[kind] + f"mappedFileSizeCommitLog={store.segment_bytes}\n", asked.rounds)
        _drop(root, asked)


# ---- stores ----------------------------------------------------------------------------------------------------------


def scan_store(size: int) -> SampleStore:
    """Return a store with equal parts of each body size, in segments of the default size if it has room."""
    each = max(1, round(size / len(BODIES) / SEGMENT_BYTES))
    segment = min(SEGMENT_BYTES, size // len(BODIES) // 4096 * 4096)
    return SampleStore([body for body in BODIES for _ in range(each)], segment_bytes=segment)


def audit_store(size: int, body: int = BODIES[1]) -> SampleStore:
    """Return a store with so many bytes of messages; the rest of the last segment is unwritten."""
    count = -(-size // SEGMENT_BYTES)
    segment = SEGMENT_BYTES if size >= SEGMENT_BYTES else size // 4096 * 4096
    return SampleStore([body] * count, segment_bytes=segment, last_bytes=min(size - (count - 1) * SEGMENT_BYTES, segment))


def kind_store(size: int, kind: str) -> SampleStore:
    """Return segments full of 1 KiB messages; with timers, one more of these."""
    plain = audit_store(size)
    timers = max(100, TIMERS_PER_GIB * size // _GIB) if kind == TIMERS else 0
    return replace(plain, kind=kind, timers=timers)


def _make(folder: Path, name: str, store: SampleStore, asked: Asked) -> Path:
    began = time.perf_counter()
    root = folder / name
    write_store(root, store)
    made = bytes_text(len(store.bodies) * store.segment_bytes)
    print(f"made a store of {made} in {time.perf_counter() - began:.0f} s: {root}", file=sys.stderr, flush=True)
    return root


def _drop(root: Path, asked: Asked) -> None:
    if not asked.keep:
        shutil.rmtree(root, ignore_errors=True)


def _check_room(asked: Asked, folder: Path) -> None:
    """Refuse a folder without room enough: derived files and datasets are up to as large again."""
    kinds = asked.kinds_size if "kinds" in asked.parts else 0
    repaired = 2 * asked.audit_size if "repair" in asked.parts else 0
    largest = 2 * max(asked.size if "scan" in asked.parts else 0, kinds, repaired, asked.audit_size + asked.large)
    free = shutil.disk_usage(folder).free
    if largest > free:
        raise BenchFailed(f"{folder}: up to {bytes_text(largest)} are needed, {bytes_text(free)} are free (--dir, --size)")

"""Lines of the benchmark's table: each figure with its ratio to the floor, and the limit beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dev.bench_stores import BODIES
from dev.cold import COLD_RUNS
from dev.measures import AuditTimes, KindTimes, RepairTimes, ScanTimes
from dev.peers import LoadTimes
from dev.questions import FLOOR as QUESTION_FLOOR
from dev.questions import LIMITS as QUESTION_LIMITS
from dev.questions import QuestionTimes
from dev.scale import ScaleTimes
from jobs.cli.terminal import Paint, in_columns
from store_io.base.crc import checksum
from store_io.base.wording import bytes_text

# Times a flushed copy of the same bytes, by body size. For stores of so many GiB or more: a command's start weighs less in these.
REPAIR_LIMITS = {
    1.5: {200: 3.0, 1024: 2.0, 4096: 1.5, 16384: 1.5},
    6.0: {200: 2.2, 1024: 1.3, 4096: 1.2, 16384: 1.1},
}
LOAD_LIMIT = 1.0  # times a copy and a release's own load() of it
TASK_LIMITS = {200: 2.5, 1024: 2.0, 16384: 1.5}  # times the floor
INDEX_LIMITS = {200: 3.3, 1024: 2.3, 16384: 1.6}
AUDIT_LIMIT, TABLES_LIMIT, COMMAND_LIMIT = 1.5, 2.0, 12.0  # seconds
FLOOR = "1.00"  # the ratio of what others are compared with
PEAK_LIMIT = 600_000_000  # bytes
DRIVER_LIMIT = 2_000_000_000  # bytes
_GIB = 1 << 30


@dataclass(frozen=True)
class Figure:
    """One line of the table; a column that says nothing is empty.

    met: None without a limit.
    """

    what: str
    bodies: str
    value: str
    rate: str = ""
    ratio: str = ""
    limit: str = ""
    met: bool | None = None

    @property
    def name(self) -> str:
        """Return the figure's name beside other runs' figures, without parts that a run itself may change."""
        return f"{self.what.partition(' (')[0]} {self.bodies}".strip()


def scan_figures(times: ScanTimes) -> list[Figure]:
    """Return the three lines of one body size."""
    floor, body = times.floor, times.body
    return [
        _against(floor, times, f"floor: read and CRC-32 ({checksum.ENGINE})", floor),
        _against(floor, times, "segment task", times.task, TASK_LIMITS[body]),
        _against(floor, times, "segment task with index", times.with_index, INDEX_LIMITS[body]),
    ]


def audit_figures(done: AuditTimes, size: int) -> list[Figure]:
    """Return the lines of the audits in a session."""
    lines = [
        _timed("first audit in the session, with tables", size, done.first, None),
        _timed("repeated audit, to plan and findings", size, done.audit, AUDIT_LIMIT),
        _timed("Delta tables on top", size, done.tables, TABLES_LIMIT),
    ]
    if done.datasets is not None:
        lines.append(_timed("datasets (all three) on top", size, done.datasets, None))
    return lines


def session_figure(seconds: float) -> Figure:
    """Return the line of a Spark session's start."""
    return Figure("start of the session", "", _seconds(seconds))


def command_figure(size: int, seconds: float | None) -> Figure:
    """Return the line of the audit as a command of its own.

    seconds: None without an environment.
    """
    return _timed("audit command, everything installed", size, seconds, COMMAND_LIMIT)


def cold_figures(least: Mapping[str, float] | None) -> list[Figure]:
    """Return the plain PySpark session and what is compared with it: whole commands, from their start to their exit code."""
    if least is None:
        return [Figure("commands, everything installed", "", "not measured: no environment")]
    floor, *rest = least.items()
    lines = [Figure(floor[0], "", _seconds(floor[1]), "", FLOOR)]
    for what, seconds in rest:
        ratio, limit = seconds / floor[1], COLD_RUNS[what]
        lines.append(Figure(what, "", _seconds(seconds), "", f"{ratio:.4f}", f"{limit:g} x", ratio <= limit))
    return lines


def peer_figures(loads: LoadTimes, size: int, audit: float | None) -> list[Figure]:
    """Return the two lines of a release's own load().

    audit: seconds of a repeated audit of the same store, if it was measured.
    """
    lines = []
    for what, seconds in (("queues kept", loads.kept), ("queues and index rebuilt", loads.rebuilt)):
        than = f", {seconds / audit:.1f} times the repeated audit" if audit else ""
        lines.append(_timed(f"load() of RocketMQ {loads.release}, {what}{than}", size, seconds, None))
    return lines


def kind_figures(measured: Iterable[KindTimes | str]) -> list[Figure]:
    """Return two lines for each kind: the floor of its log, and the audit.

    The second has its ratio and its entries a second.
    """
    lines = []
    for times in measured:
        if isinstance(times, str):
            lines.append(Figure(f"audit, {times}", "", "not measured: rocksdict is not installed"))
            continue
        what, bodies = f"audit, {times.kind} ({times.entries / times.audit / 1e6:.2f} M entries/s)", _bodies(BODIES[1])
        floor, audit = _rate(times.size_bytes, times.floor), _rate(times.size_bytes, times.audit)
        lines.append(Figure(f"floor of the log, {times.kind}", bodies, _seconds(times.floor), floor, FLOOR))
        lines.append(Figure(what, bodies, _seconds(times.audit), audit, f"{times.audit / times.floor:.2f}"))
    return lines


def question_figures(times: QuestionTimes) -> list[Figure]:
    """Return the lines of questions about messages as a table, first by the wall, then by the processors of all processes."""
    lines = [Figure("first question about messages of a session", "", _seconds(times.first))]
    for what, limit in QUESTION_LIMITS.items():
        seconds, ratio = times.wall[what], times.wall[what] / times.wall[QUESTION_FLOOR]
        text, met = (f"{limit:g} x floor", ratio <= limit) if limit else ("", None)
        rate = _rate(times.size_bytes, seconds)
        lines.append(Figure(f"messages: {what}", _bodies(BODIES[1]), _seconds(seconds), rate, f"{ratio:.2f}", text, met))
    for what, seconds in times.processors.items():
        lines.append(Figure(f"messages: {what}, processor time of all processes", _bodies(BODIES[1]), _seconds(seconds)))
    return lines


def repair_figures(times: RepairTimes | None) -> list[Figure]:
    """Return the lines of one body size: the flushed copy that a repair is held against, as that flushes too, and the repair."""
    if times is None:
        return [Figure("repair command", "", "not measured: no environment, or no cp")]
    sizes = [size for size in REPAIR_LIMITS if times.size_bytes >= size * _GIB]
    limit = REPAIR_LIMITS[max(sizes)].get(times.body) if sizes else None
    return [
        _against(times.flushed, times, "floor: cp -r of the store, flushed to the disk", times.flushed),
        Figure("the same, not flushed", _bodies(times.body), _seconds(times.copy), _rate(times.size_bytes, times.copy)),
        _against(times.flushed, times, "repair command: queues and index made anew", times.repair, limit),
    ]


def load_figures(times: RepairTimes, release: str) -> list[Figure]:
    """Return the lines of a copy on which the release itself makes queues and index anew, flushed as a repair is."""
    if times.load is None:
        return []
    both = times.flushed + times.load
    return [
        _against(both, times, f"floor: cp -r flushed, then load() of RocketMQ {release}", both),
        _against(both, times, "the same repair, against copy and load()", times.repair, LOAD_LIMIT),
    ]


def scale_figures(times: ScaleTimes) -> list[Figure]:
    """Return the lines of one shape: what its tasks take, what the driver takes and holds."""
    sizes = [(times.segments, "segments"), (times.queues, "queues"), (times.queue_files, "queue files")]
    found = ", ".join(f"{number:,} {what}" for number, what in sizes)
    lines = [
        Figure(f"{times.shape}: {found}", "", f"{times.messages:,} messages", "", "", "", None),
        Figure(f"{times.shape}: tasks, one after the other", "", _seconds(times.tasks), _rate(times.log_bytes, times.tasks)),
        Figure(f"{times.shape}: command, to the tables", "", _seconds(times.wall), _rate(times.log_bytes, times.wall)),
        Figure(f"{times.shape}: processor time of the driver, to the files", "", _seconds(times.driver)),
        Figure(f"{times.shape}: the same of the tables", "", _seconds(times.tables)),
        Figure(
            f"{times.shape}: the driver's time for a segment, queue or file", "", f"{times.driver / times.units * 1e6:.0f} us"
        ),
    ]
    if times.findings:
        lines.append(Figure(f"{times.shape}: findings, also those that are only counted", "", f"{times.findings:,}"))
    if times.peak is None or times.started is None:
        return [*lines, Figure(f"{times.shape}: memory of the driver", "", "not known on this system")]
    peak = Figure(
        f"{times.shape}: peak memory of the driver, of it {bytes_text(times.started)} before",
        "", bytes_text(times.peak), limit=bytes_text(DRIVER_LIMIT), met=times.peak < DRIVER_LIMIT,
    )  # fmt: skip
    return [*lines, peak]


def peak_figure(size: int, peak: int | None) -> Figure:
    """Return the line of one segment size."""
    what = f"peak memory of a worker, segment of {size / _GIB:g} GiB"
    if peak is None:
        return Figure(what, _bodies(BODIES[1]), "not known on this system")
    return Figure(what, _bodies(BODIES[1]), bytes_text(peak), limit=bytes_text(PEAK_LIMIT), met=peak < PEAK_LIMIT)


def _against(floor: float, times: ScanTimes | RepairTimes, what: str, seconds: float, limit: float | None = None) -> Figure:
    """Return the line of so many seconds over the store's bytes, as a ratio to the floor's."""
    ratio, text = seconds / floor, f"{limit:g} x floor" if limit else ""
    met = ratio <= limit if limit else None
    return Figure(what, _bodies(times.body), _seconds(seconds), _rate(times.size_bytes, seconds), f"{ratio:.2f}", text, met)


def _timed(what: str, size: int, seconds: float | None, limit: float | None) -> Figure:
    what = f"{what} ({size / _GIB:g} GiB)"
    if seconds is None:
        return Figure(what, _bodies(BODIES[1]), "not measured: no environment")
    text = f"{limit:g} s" if limit else ""
    return Figure(
        what, _bodies(BODIES[1]), _seconds(seconds), _rate(size, seconds), "", text, None if limit is None else seconds < limit
    )


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as text, columns aligned."""
    rows = [("", "bodies", "value", "GB/s", "x floor", "limit", "met")]
    rows += [(f.what, f.bodies, f.value, f.rate, f.ratio, f.limit, {None: "", True: "yes", False: "NO"}[f.met]) for f in figures]
    head, *lines = in_columns(rows, range(1, len(rows[0])), [""] * len(rows), Paint(False))
    return "\n".join([head, "-" * max(map(len, lines)), *lines])


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f} s"


def _rate(size: int, seconds: float) -> str:
    return f"{size / seconds / 1e9:.2f}"


def _bodies(size: int) -> str:
    return f"{size} B" if size < 1024 else f"{size // 1024} KiB"

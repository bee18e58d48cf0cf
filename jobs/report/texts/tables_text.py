"""The text of `tables`: what the tables of results hold, and what was taken out of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.report.texts.history_text import when_text
from jobs.report.texts.terminal import BOLD, YELLOW, Paint, in_columns
from jobs.report.texts.text import bytes_text, count_text, printable, seconds_text
from schemas.rows import Row

_LISTED = 10  # runs


def tables_text(view: Row, colour: bool = False) -> str:
    """The whole text of a view of `jobs.tables.upkeep.command`."""
    paint = Paint(colour)
    return "\n".join([*_TEXTS[view["action"]](view, paint), *_end(view, paint)]) + "\n"


def _prune(view: Row, paint: Paint) -> Iterator[str]:
    gone, needed = view["gone"], view["needed"]
    kept = [f"began since {when_text(view['since'])} UTC"] if view["since"] else []
    kept += [f"are among the {count_text(view['keep_runs'], 'newest run')} of a store"] if view["keep_runs"] is not None else []
    yield paint(BOLD, f"{len(gone):,} of {count_text(view['runs'], 'run')} go; those stay that {' or '.join(kept)}")
    if needed:
        why = "the latest one of a store, its latest full one, or the one that saw its log reach furthest"
        yield f"  kept all the same: {count_text(len(needed), 'older run')}, each {why}"
    yield from _runs("goes", gone)
    yield from _runs("kept", needed)
    yield from _columns(("table", "rows that go"), [(t["table"], f"{t['rows']:,}") for t in view["by_table"]], paint)
    stopped = {run_id for table in view["by_table"] for run_id in table["unfinished_runs"]}
    if stopped:
        yield f"  of them rows of {count_text(len(stopped), 'run')} that were stopped before they were whole, over 7 days ago"
    if gone and not view["dry_run"]:
        yield "their files stay for readers that are at work; `tables vacuum` removes them once they are 7 days old"


def _runs(word: str, runs: Sequence[Row]) -> Iterator[str]:
    for run in runs[:_LISTED]:
        yield f"  {word}  {printable(run['run_id'])}  {when_text(run['started_at'])} UTC"
    if len(runs) > _LISTED:
        yield f"  and {count_text(len(runs) - _LISTED, 'more run')}, until {when_text(runs[-1]['started_at'])} UTC"


def _compact(view: Row, paint: Paint) -> Iterator[str]:
    rows = [(t["table"], *map(_number, t["files"]), *map(bytes_text, t["bytes"])) for t in view["by_table"]]
    yield from _columns(("table", "files before", "after", "size before", "after"), rows, paint)


def _vacuum(view: Row, paint: Paint) -> Iterator[str]:
    rows = [
        (t["table"], _number(t["files"]), bytes_text(t["bytes"]), *map(_number, t["log_files"]), *map(bytes_text, t["log_bytes"]))
        for t in view["by_table"]
    ]
    head = ("table", "files that go", "size", "log files before", "after", "log size before", "after")
    yield from _columns(head, rows, paint)
    total = sum(t["bytes"] for t in view["by_table"])
    files = count_text(sum(t["files"] for t in view["by_table"]), "file")
    yield paint(BOLD, f"{files}, {bytes_text(total)}, that no version of the last {_span(view['older_than_hours'])} has")


def _info(view: Row, paint: Paint) -> Iterator[str]:
    rows = [
        (
            t["table"], _number(t["rows"]), _number(t["files"]), bytes_text(t["bytes"]), _number(t["old_files"]),
            bytes_text(t["old_bytes"]), _number(t["log_files"]), bytes_text(t["log_bytes"]),
        )
        for t in view["by_table"]
    ]  # fmt: skip
    head = ("table", "rows", "files", "size", "old files", "size", "log files", "size")
    yield from _columns(head, rows, paint)
    span = f", {when_text(view['oldest'])} to {when_text(view['newest'])} UTC" if view["runs"] else ""
    yield paint(BOLD, f"{count_text(view['runs'], 'run')}{span}")
    if any(t["old_files"] for t in view["by_table"]):
        yield "old files: of earlier versions, or of a writer that was stopped; `tables vacuum` removes those over 7 days old"


def _end(view: Row, paint: Paint) -> Iterator[str]:
    if view["dry_run"]:
        yield paint(YELLOW, f"dry run: nothing in {printable(view['tables'])} was changed")
    elif view["action"] != "info":
        yield f"done in {seconds_text(view['seconds'])}: {printable(view['tables'])}"


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]], paint: Paint) -> Iterator[str]:
    lines = in_columns([head, *rows], range(1, len(head)), [BOLD, *([""] * len(rows))], paint)
    yield from ("  " + line for line in lines)


def _number(value: int) -> str:
    return f"{value:,}"


def _span(hours: int) -> str:
    return count_text(hours // 24, "day") if hours % 24 == 0 else count_text(hours, "hour")


_TEXTS = {"prune": _prune, "compact": _compact, "vacuum": _vacuum, "info": _info}

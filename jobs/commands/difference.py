"""diff: what two runs say of the same stores. New, fixed and persisting findings; and bytes that changed where a broker no longer
writes.

A finding persists where the later run has one of the same code in the same place. Places move, because neighbouring findings fold
into one range that grows: ranges that overlap are one finding. One that the later run does not have is fixed only where that run
has read its file, and the segment of the message that it is about.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.cli.option_values import LAST_RUN, near
from jobs.cli.options import Command
from jobs.report.texts.history_text import difference_text, last_text
from jobs.report.texts.run_words import short_names
from jobs.tables import past_runs
from jobs.tables.delta_query import text
from jobs.tables.past_runs import History, time_of
from schemas.advice import exit_code_of
from schemas.rows import Row
from store_io.base.errors import StoreError, UsageError
from store_io.base.exit_codes import DERIVED, GAP_CODES, INCOMPLETE, LOST, SEVERITIES, of_severity, severity_rank, worst

_RUN_COLUMNS = (
    "level exit_code complete gaps verdict answer location release settings tool_version rules_version min_phy_offset "
    "truncate_at lacks_messages diverged"
).split()
_OF_BOTH = {"exit_codes": "exit_code", "verdicts": "verdict", "answers": "answer"} | {
    key: key for key in ("complete", "lacks_messages", "diverged")
}
FINDINGS_AT_ONCE = 400_000  # of both runs, compared in memory: about 1 KiB each
_PLACE = "store code file start end phy_offset topic queue_id queue_offset".split()
_WORDS = "severity message expected actual next".split()


def run(command: Command) -> int:
    """Run the command.

    Returns 0 if nothing is new, 10 or 20 as the most severe new finding, 3 if a run is missing or incomplete.
    """
    uri = past_runs.tables_of(command)
    last = list(command.arguments) == [LAST_RUN]
    if not last and len(command.arguments) != 2:
        raise UsageError(f"diff takes two runs, RUN_A RUN_B, or {LAST_RUN}, not {len(command.arguments)}")
    history = History(uri)
    if last:
        view = read_last(history, command.options.get("--store"))
    else:
        view = read_difference(history, command.arguments[0], command.arguments[1], command.options.get("--store"))
    views = view["comparisons"] if last else [view]
    places = [place for one in views for store in one["stores"] for place in store["locations"]]
    past_runs.write_view(command, view, last_text if last else difference_text, places)
    return int(view["exit_code"])


# ---- out of the tables ---------------------------------------------------------------------------------------------


def read_difference(history: History, run_a: str, run_b: str, store: str | None = None, stores: Collection[str] = ()) -> Row:
    """Read two runs into the rows of `difference_view`. Raises StoreError if a run or the store is missing.

    store: as a user names one. stores: names of those alone that are compared; empty: all.
    """
    found = history.runs(_RUN_COLUMNS, [run_a, run_b])
    of_a, of_b = ({row["store"]: row for row in found if row["run_id"] == run_id} for run_id in (run_a, run_b))
    if not of_a or not of_b:
        missing = run_b if of_a else run_a
        known = {row["run_id"] for row in history.runs([])}
        raise StoreError(
            f"run {missing!r}: no such run in {history.uri}, or it was stopped before it was whole{near(missing, known)}"
        )
    store = past_runs.chosen_store((*of_a, *of_b), store, f"run {run_a} or {run_b}")
    if wanted := [store] if store is not None else stores:
        of_a, of_b = ({name: row for name, row in found.items() if name in wanted} for found in (of_a, of_b))
    compared: list[Row] = []
    for names in _batches(history, [run_a, run_b], sorted(of_a.keys() | of_b.keys())):
        moved, persisting = _findings(history, run_a, run_b, names)
        files = _files(history, [run_a, run_b], names)
        before, after = (
            {kind: [r for r in rows if r["run_id"] == run_id] for kind, rows in files.items()} for run_id in (run_a, run_b)
        )
        for row in after["segments"]:  # taken as an earlier run had verified it: what its bytes are now, run B does not know
            if row["verified_run"] not in (None, run_b):
                row["digest"] = None
        compared += compare_stores(names, of_a, of_b, Compared(moved, persisting, before, after))
    return difference_view(of_a, of_b, compared)


def read_last(history: History, store: str | None = None) -> Row:
    """Read the differences between the two newest runs of each store.

    There is one for each pair of runs, as `difference_view` makes it, of the stores that have these. Raises StoreError if no
    store has two runs.
    """
    of_store: defaultdict[str, list[Row]] = defaultdict(list)
    store, known = history.runs_of(store, [])
    for row in known:
        of_store[row["store"]].append(row)
    pairs: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    newest: dict[tuple[str, str], int] = {}
    for name, rows in of_store.items():
        if len(rows) > 1:
            pair = rows[-2]["run_id"], rows[-1]["run_id"]
            pairs[pair].append(name)
            newest[pair] = max(rows[-1]["started_at"] or 0, newest.get(pair, 0))
    if not pairs:
        whose = "no store has" if store is None else f"store {store!r} does not have"
        raise StoreError(f"{history.uri}: {whose} two runs that could be compared")
    newest_first = sorted(pairs, key=lambda pair: (-newest[pair], pair))
    views = [read_difference(history, *pair, stores=frozenset(pairs[pair])) for pair in newest_first]
    return {
        "schema_version": past_runs.SCHEMA_VERSION,
        "exit_code": worst(view["exit_code"] for view in views),
        "comparisons": views,
        "one_run_only": sorted(name for name, rows in of_store.items() if len(rows) == 1),
    }


def _batches(history: History, run_ids: Sequence[str], stores: Sequence[str]) -> Iterator[list[str]]:
    """Yield the stores in groups that have few findings together: the places of a group are compared in memory."""
    statement = "SELECT store, count(*) AS findings FROM known GROUP BY store"
    findings = {row["store"]: row["findings"] for row in history.query("findings", run_ids, [], statement, stores)}
    batch: list[str] = []
    held = 0
    for store in stores:
        more = findings.get(store, 0)
        if batch and held + more > FINDINGS_AT_ONCE:
            yield batch
            batch, held = [], 0
        batch.append(store)
        held += more
    yield batch


def _findings(history: History, run_a: str, run_b: str, stores: Sequence[str]) -> tuple[list[Row], list[Row]]:
    """Return the places of findings that differ between the runs, with `count_a` and `count_b`, and the others summed up."""
    place = ", ".join(f'"{name}"' for name in _PLACE)
    gravest = ", ".join(f"{name} DESC NULLS LAST" for name in ("rank", *_WORDS))
    ranks = " ".join(f"WHEN '{severity}' THEN {-severity_rank(severity)}" for severity in SEVERITIES)
    sides = []
    for side, run_id in (("a", run_a), ("b", run_b)):
        condition = f"run_id = {text(run_id)}"
        of_side = f"FILTER (WHERE {condition})"
        words = ", ".join(f"'{name}', max({name}) FILTER (WHERE {condition} AND number = 1)" for name in _WORDS)
        sides.append(
            f"""sum("count") {of_side} AS count_{side}, max(rank) {of_side} AS rank_{side},
            CASE WHEN count(*) {of_side} > 0 THEN named_struct({words}) END AS words_{side}"""
        )
    # A greater rank is graver; a severity of a later version counts as the gravest. The gravest finding of a place gets number 1:
    # DataFusion's first_value with an order would take time by the square of the places.
    places = f"""
        WITH ranked AS (SELECT *, CASE severity {ranks} ELSE {-severity_rank("")} END AS rank FROM known),
        numbered AS (SELECT *, row_number() OVER (PARTITION BY run_id, {place} ORDER BY {gravest}) AS number FROM ranked),
        places AS (SELECT {place}, {", ".join(sides)} FROM numbered GROUP BY {place}),
        compared AS (SELECT *, coalesce(count_b <= count_a AND rank_b <= rank_a, FALSE) AS same FROM places)"""
    columns = [*_PLACE[1:], "severity", *_WORDS[1:], "count"]
    moved, persisting = (
        history.query("findings", [run_a, run_b], columns, f"{places} {statement}", stores)
        for statement in (
            f"SELECT {place}, count_a, count_b, words_a, words_b FROM compared WHERE NOT same",
            """SELECT store, words_b['severity'] AS severity, code, count(*) AS findings, sum(count_b) AS "count"
            FROM compared WHERE same GROUP BY store, words_b['severity'], code""",
        )
    )
    return moved, persisting


_WHOLE = "CASE WHEN problem IS NULL AND digest <> '' THEN digest END AS digest"
_SEGMENTS = f"""
    WITH ends AS (
        SELECT run_id, store, file, max(extent['end']) FILTER (WHERE extent['kind'] <> 'unwritten') AS wrote
        FROM (SELECT run_id, store, file, unnest(extents) AS extent FROM known) GROUP BY run_id, store, file
    )
    SELECT run_id, store, file, base_offset, size_bytes, modified_ns, verified_run, {_WHOLE}, wrote, extents IS NOT NULL AS known
    FROM known LEFT JOIN ends USING (run_id, store, file)"""


def _files(history: History, run_ids: Sequence[str], stores: Sequence[str]) -> dict[str, list[Row]]:
    """Return "segments", "index" and "queues" -> a row per file: run_id, store, file, size_bytes, digest (null: not all read)."""
    of_file = ["file", "size_bytes", "digest", "problem"]
    facts = [*of_file, "base_offset", "modified_ns", "verified_run", "extents"]
    index = f"SELECT run_id, store, file, size_bytes, {_WHOLE} FROM known"
    queues = history.query("queues", run_ids, ["files"], stores=stores)
    return {
        "segments": history.query("segments", run_ids, facts, _SEGMENTS, stores),
        "index": history.query("index_files", run_ids, of_file, index, stores),
        "queues": [{"run_id": row["run_id"], "store": row["store"], **file} for row in queues for file in row["files"] or ()],
    }


# ---- the comparison ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """What two runs have of some stores. The rows of each list carry their `store`.

    moved, persisting: places of findings as `_findings` reads them.
    before, after: files of the earlier and of the later run, as `_files` reads them.
    """

    moved: Sequence[Row]
    persisting: Sequence[Row]
    before: dict[str, list[Row]]
    after: dict[str, list[Row]]


def compare_stores(stores: Sequence[str], of_a: dict[str, Row], of_b: dict[str, Row], compared: Compared) -> Iterator[Row]:
    """Yield the difference of each store as the JSON holds it. of_a, of_b: rows of `runs` by store."""
    moved, persisting = _by_store(compared.moved), _by_store(compared.persisting)
    before, after = ({kind: _by_store(rows) for kind, rows in files.items()} for files in (compared.before, compared.after))
    shown_as = short_names((*of_a, *of_b))
    for name in stores:
        side_a, side_b = (
            _Side(runs.get(name), {kind: rows[name] for kind, rows in files.items()})
            for runs, files in ((of_a, before), (of_b, after))
        )
        yield {"store": name, "name": shown_as[name], **_store(side_a, side_b, moved[name], persisting[name])}


def difference_view(of_a: dict[str, Row], of_b: dict[str, Row], stores: Sequence[Row]) -> Row:
    """Return the difference as the JSON holds it. of_a, of_b: rows of `runs` by store. stores: as `compare_stores` has them."""
    one_a, one_b = (next(iter(found.values()), {}) for found in (of_a, of_b))
    return {
        "schema_version": past_runs.SCHEMA_VERSION,
        "run_a": _run(one_a),
        "run_b": _run(one_b),
        "exit_code": worst(store["code"] for store in stores),
        "other_rules": [
            f"{words} {one_a.get(key)} -> {one_b.get(key)}"
            for key, words in (("tool_version", "tool"), ("rules_version", "rules"))
            if one_a and one_b and one_a.get(key) != one_b.get(key)
        ],
        "stores": list(stores),
    }


def _by_store(rows: Iterable[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["store"]].append(row)
    return found


def _run(row: Row) -> Row:
    known = {key: row.get(key) for key in ("run_id", "tool_version", "rules_version")}
    return {**known, "started_at": time_of(row.get("started_at"))}


@dataclass(frozen=True)
class _Side:
    """One store in one run, with its files by kind.

    run: its row of `runs`, None if the run did not have it.
    """

    run: Row | None
    files: dict[str, list[Row]]


def _store(side_a: _Side, side_b: _Side, moved: Sequence[Row], persisting: Sequence[Row]) -> Row:
    a, b, before, after = side_a.run, side_b.run, side_a.files, side_b.files
    new, grown, fixed, still = match_findings(moved)
    unread = {row["file"] for kind in ("segments", "index") for row in after[kind] if row["digest"] is None}
    was, now = _digests(before), _digests(after)
    if b is not None and b["level"] == "quick":  # which leaves out queue and index files too
        unread |= {finding["file"] for finding in fixed if finding["file"] not in now}
    unlisted = _unlisted(b, after)
    emptied = bool(a and b and before["segments"] and not after["segments"])  # what is gone is not fixed
    of_b = _Places(after["segments"], b is None or bool(b["complete"]))
    gone, fixed = fixed, []
    not_read: list[Row] = []
    for finding in gone:
        read = not (unlisted or emptied or finding["file"] in unread) and of_b.was_read(finding, finding["file"] in now)
        (fixed if read else not_read).append(finding)
    log: Row = {}
    derived: dict[str, Row] = {}
    if a and b and not unlisted:
        log = compare_log(before["segments"], after["segments"])
        derived = {kind: compare_derived(before[kind], after[kind], kind == "index") for kind in ("index", "queues")}
    for finding in (*new, *grown):  # None where one of the runs has not read the whole file
        one, other = was.get(finding["file"]), now.get(finding["file"])
        finding["bytes_changed"] = None if one is None or other is None else one != other
    codes = [of_severity(f["severity"]) for f in (*new, *grown)]
    codes += [LOST] * bool(log and (log["changed"] or log["missing"] or log["shrank"]))
    codes += [DERIVED] * any(one["changed"] for one in derived.values())
    codes += [INCOMPLETE] * (b is None)  # a store without a baseline is new, which is no fault
    codes += [code for run in (a, b) if run is not None and not run["complete"] for code in _codes_of_gaps(run)]
    total: Counter[tuple[str, str]] = Counter()
    places: Counter[tuple[str, str]] = Counter()
    for row in (*persisting, *still):
        total[row["severity"], row["code"]] += row["count"]
        places[row["severity"], row["code"]] += row.get("findings", 1)
    return {
        "code": worst(codes),
        **{key: [row and row[column] for row in (a, b)] for key, column in _OF_BOTH.items()},
        "unreadable_now": bool(a and b and a["complete"] and b["exit_code"] in GAP_CODES),
        "locations": [row["location"] or "" for row in (a, b) if row],
        "other_settings": _other_settings(a, b) if a and b and not (unlisted or emptied or _unlisted(a, before)) else [],
        "new": new,
        "grown": grown,
        "fixed": fixed,
        "not_read": not_read,
        "persisting": [
            {"severity": key[0], "code": key[1], "findings": places[key], "count": total[key]}
            for key in sorted(total, key=lambda key: (severity_rank(key[0]), key[1]))
        ],
        "commitlog": log or None,
        "index": derived.get("index"),
        "queues": derived.get("queues"),
    }


def _codes_of_gaps(run: Row) -> list[int]:
    """Return the exit code of each gap of an incomplete run. If the run's version wrote no causes, it is the usual code."""
    return [exit_code_of(cause) for cause in run["gaps"] or ()] or [INCOMPLETE]


def _unlisted(run: Row | None, files: dict[str, list[Row]]) -> bool:
    """Say whether a run could not even list the store, as one that was not mounted. Then nothing is known of it."""
    return run is not None and not run["complete"] and not any(files.values())


class _Places:
    """The physical offsets that a run has read.

    complete: whether it could judge all that it listed.
    """

    def __init__(self, segments: Sequence[Row], complete: bool):
        self._complete = complete
        kept = sorted((row["base_offset"], row["base_offset"] + row["size_bytes"], row["digest"] is not None) for row in segments)
        self._starts = [start for start, _, _ in kept]
        self._kept = kept

    def was_read(self, finding: Row, file_read: bool) -> bool:
        """Say whether the run would have the finding if it were still there. file_read: it has read the finding's own file.

        A complete run has read all that a finding can be about, but perhaps not the segment of the message that it names. In any
        other run much that was not read has no row, such as a link in place of a segment: there the place itself has to be one
        that was read. If several findings were folded into one, only the first one's place is known.
        """
        first = finding["phy_offset"]
        at = self._segment_of(first) if first is not None else None
        if self._complete:
            return at is None or at[2]
        return file_read and finding["count"] == 1 and at is not None and at[2]

    def _segment_of(self, phy_offset: int) -> tuple[int, int, bool] | None:
        number = bisect_right(self._starts, phy_offset) - 1
        if number < 0 or phy_offset >= self._kept[number][1]:
            return None
        return self._kept[number]


def _digests(files: dict[str, list[Row]]) -> dict[str, str]:
    return {row["file"]: row["digest"] for rows in files.values() for row in rows if row["digest"]}


def _other_settings(a: Row, b: Row) -> list[str]:
    found = [f"release {a['release']} -> {b['release']}"] if a["release"] != b["release"] else []
    of_a, of_b = ({s["key"]: s["value"] for s in row["settings"] or ()} for row in (a, b))
    keys = sorted(key for key in of_a.keys() | of_b.keys() if of_a.get(key) != of_b.get(key))
    return found + [f"{key} {of_a.get(key, 'unset')} -> {of_b.get(key, 'unset')}" for key in keys]


# ---- findings ------------------------------------------------------------------------------------------------------


def match_findings(moved: Iterable[Row]) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
    """Return (new, grown, fixed, still there though elsewhere) of the places that two runs do not have alike.

    Each row has the place, `count_a` and `count_b` (null: not in that run), `words_a` and `words_b`. Rows of one code, file and
    queue whose ranges overlap, in either run, are one finding: it has grown if the later run counts more, covers bytes that the
    earlier one did not, or judges it graver. The other rows are matched by their physical offset, whichever file holds it now.
    """
    groups: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in moved:
        groups[row["code"], row["file"], row["topic"], row["queue_id"]].append(row)
    new: list[Row] = []
    grown: list[Row] = []
    fixed: list[Row] = []
    still: list[Row] = []
    for _, rows in sorted(groups.items(), key=lambda item: tuple(map(str, item[0]))):
        for cluster in _clusters(rows):
            a, b = ([row for row in cluster if row[f"count_{side}"] is not None] for side in "ab")
            if not a or not b:
                new += [_finding(row, "b") for row in b]
                fixed += [_finding(row, "a") for row in a]
                continue
            was = {
                "start": min((r["start"] for r in a if r["start"] is not None), default=None),
                "end": max((r["end"] for r in a if r["end"] is not None), default=None),
                "count": sum(r["count_a"] for r in a),
                "severity": max((r["words_a"]["severity"] for r in a), key=of_severity),
            }
            more = sum(r["count_b"] for r in b) > was["count"]
            graver = any(of_severity(r["words_b"]["severity"]) > of_severity(was["severity"]) for r in b)
            wider = was["start"] is not None and any(r["start"] < was["start"] or r["end"] > was["end"] for r in b)
            for row in b:
                (grown if more or graver or wider else still).append({**_finding(row, "b"), "was": was})
    by_message = {_message(row): row for row in fixed if row["phy_offset"] is not None}
    matched: set[int] = set()  # of rows, by identity: there may be very many
    for row in new:
        old = by_message.pop(_message(row), None) if row["phy_offset"] is not None else None
        if old is not None:
            matched |= {id(row), id(old)}
            graver = row["count"] > old["count"] or of_severity(row["severity"]) > of_severity(old["severity"])
            was = {key: old[key] for key in ("file", "start", "end", "count", "severity")}
            (grown if graver else still).append({**row, "was": was})
    new, fixed = ([row for row in rows if id(row) not in matched] for rows in (new, fixed))
    return new, grown, fixed, still


def _message(row: Row) -> tuple[Any, ...]:
    return row["code"], row["phy_offset"], row["topic"], row["queue_id"]


def _clusters(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield rows of one code, file and queue in groups of overlapping ranges; those of whole files are one group."""
    whole = [row for row in rows if row["start"] is None]
    if whole:
        yield whole
    cluster: list[Row] = []
    reach = 0
    for row in sorted((row for row in rows if row["start"] is not None), key=lambda row: (row["start"], row["end"])):
        if cluster and row["start"] >= reach and row["start"] != cluster[-1]["start"]:
            yield cluster
            cluster = []
        reach = max(reach, row["end"]) if cluster else row["end"]
        cluster.append(row)
    if cluster:
        yield cluster


def _finding(row: Row, side: str) -> Row:
    place = {key: row[key] for key in _PLACE if key != "store"}
    words = {key: row[f"words_{side}"][key] for key in _WORDS}
    return {**place, **words, "count": row[f"count_{side}"]}


# ---- files ---------------------------------------------------------------------------------------------------------


def compare_log(before: Sequence[Row], after: Sequence[Row]) -> Row:
    """Compare the CommitLog's segments of two runs.

    Each row: file, base_offset, size_bytes, modified_ns, digest (null: not all read), wrote, the byte after the last written one
    (null: none is), and known, whether that was looked for at all.

    changed: segments older than the last written one of the earlier run, which no broker writes to any more, with other bytes or
    another size.
    missing: gone, though older ones still exist.
    retired: gone from the front, as retention does it.
    added: after the earlier run's last one.
    appeared: new between others.
    shrank: the log's end has moved back.
    not_compared: older segments of which one run has not read all bytes.
    none_left: all segments are gone.
    """
    old, new = ({row["file"]: row for row in rows} for rows in (before, after))
    last = max((row["base_offset"] for row in before if row["wrote"] is not None), default=-1)
    least = min((row["base_offset"] for row in after), default=None)
    closed = _ClosedFiles()
    missing: list[Row] = []
    retired: list[Row] = []
    for row in sorted(before, key=lambda row: (row["base_offset"], row["file"])):
        now = new.get(row["file"])
        if now is None:
            (retired if least is not None and row["base_offset"] < least else missing).append(row)
        elif row["base_offset"] < last:
            closed.take(row, now)
    added = [row for row in after if row["file"] not in old and row["base_offset"] > last]
    ends = [max((r["base_offset"] + r["wrote"] for r in rows if r["wrote"] is not None), default=0) for rows in (before, after)]
    beyond = any(not row["known"] and row["base_offset"] + row["size_bytes"] > ends[1] for row in after)
    tail = next((row for row in before if row["base_offset"] == last), None)
    tail_now = new.get(tail["file"]) if tail else None
    return {
        **closed.counted(),
        "missing": [row["file"] for row in missing if row["base_offset"] <= last],
        "none_left": bool(before) and not after,
        "retired": _amount(retired),
        "added": _amount(added),
        "appeared": [row["file"] for row in after if row["file"] not in old and row["base_offset"] <= last],
        "end": ends,
        "shrank": ends[1] < ends[0] and not beyond,
        "last": tail and tail_now and {"file": tail["file"], "wrote": [tail["wrote"], tail_now["wrote"]]},
    }


def compare_derived(before: Sequence[Row], after: Sequence[Row], one_series: bool) -> Row:
    """Compare the index files (one_series) or queue files of two runs; each folder of queue files is a series.

    All but the newest file of each series in the earlier run are full, and no broker writes to them any more.
    """
    new = {row["file"]: row for row in after}
    newest: dict[str, str] = {}
    for row in before:
        series = "" if one_series else row["file"].rpartition("/")[0]
        newest[series] = max(newest.get(series, ""), row["file"])
    growing, full = set(newest.values()), _ClosedFiles()
    gone: list[Row] = []
    for row in sorted(before, key=lambda row: str(row["file"])):
        now = new.get(row["file"])
        if now is None:
            gone.append(row)
        elif row["file"] not in growing:
            full.take(row, now)
    known = {row["file"] for row in before}
    return {
        **full.counted(),
        "gone": _amount(gone),
        "added": _amount([row for row in after if row["file"] not in known]),
    }


@dataclass
class _ClosedFiles:
    """Files that may not change any more, held against the same ones of a later run."""

    changed: list[Row] = field(default_factory=list)
    same: list[Row] = field(default_factory=list)
    not_compared: list[Row] = field(default_factory=list)

    def take(self, before: Row, after: Row) -> None:
        if before["size_bytes"] == after["size_bytes"] and (before["digest"] is None or after["digest"] is None):
            self.not_compared.append(before)
        elif before["digest"] != after["digest"] or before["size_bytes"] != after["size_bytes"]:
            self.changed.append(_changed_file(before, after))
        else:
            self.same.append(before)

    def counted(self) -> Row:
        return {"changed": self.changed, "same": _amount(self.same), "not_compared": _amount(self.not_compared)}


def _changed_file(before: Row, after: Row) -> Row:
    """Return the row of a changed file.

    modified: false if the modification time is the same too, null if it is not known.
    """
    times = before.get("modified_ns"), after.get("modified_ns")
    return {
        "file": before["file"],
        "size_bytes": [before["size_bytes"], after["size_bytes"]],
        "digest": [before["digest"], after["digest"]],
        "modified": None if None in times else times[0] != times[1],
    }


def _amount(rows: Sequence[Row]) -> Row:
    return {"files": len(rows), "bytes": sum(row["size_bytes"] or 0 for row in rows)}

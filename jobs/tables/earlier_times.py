"""The store times of a copy's segments, as the newest audit that counts wrote them to its tables. Read without a JVM."""

from __future__ import annotations

from collections.abc import Mapping

from jobs import RULES_VERSION
from jobs.tables.delta_query import DeltaQuery, text
from schemas.rows import Row
from store_io.base.errors import UsageError
from store_io.messages.choice.by_tables import EarlierTimes, KnownSegment, unchanged
from store_io.messages.open_store import OpenStore

_RUN = ("run_id", "store", "release", "rules_version", "settings")
_SEGMENT = (
    "file", "size_bytes", "modified_ns", "edge_digest", "verified_run", "problem", "first_store_time_ms", "last_store_time_ms",
)  # fmt: skip


def earlier_times(tables: str, store: OpenStore, release: str) -> EarlierTimes:
    """Return the times of segments that are still the same, from the newest run with this release and these settings.

    That run has the current rules. Raises UsageError if there are no tables, TablesFailed if they cannot be read.
    """
    runs, segments = DeltaQuery(f"{tables}/runs"), DeltaQuery(f"{tables}/segments")
    if not runs.exists() or not segments.exists():
        raise UsageError(f"{tables} holds no tables of audits: name DIR/tables of their --out DIR, or their --tables")
    root = store.location.root
    rows = runs.ask(_RUN, f'WHERE "location" = {text(root)} ORDER BY "started_at" DESC, "run_id" DESC')
    if not rows:
        return EarlierTimes(refused=f"the tables {tables} have no run of the store {root}")
    settings = {key: str(setting.value) for key, setting in store.rules.settings.items()}
    row = next((row for row in rows if _fits(row, release, settings)), None)
    if row is None:
        alike = f"release {release}, the same settings and rules version {RULES_VERSION}"
        return EarlierTimes(refused=f"the tables {tables} have no run of the store {root} with {alike}")
    own = f'"run_id" = {text(row["run_id"])} AND "store" = {text(row["store"])}'
    found = {one["file"]: _known(one) for one in segments.ask(_SEGMENT, f"WHERE {own}") if _says_times(one)}
    return unchanged(store, EarlierTimes(row["run_id"], found))


def _fits(row: Row, release: str, settings: Mapping[str, str]) -> bool:
    """Say whether that run took the same bytes for messages."""
    if not isinstance(row["run_id"], str) or not isinstance(row["store"], str) or not isinstance(row["settings"], list):
        return False  # not what an audit writes
    own = {setting["key"]: setting["value"] for setting in row["settings"] if _names_setting(setting)}
    return (row["release"], row["rules_version"], own) == (release, RULES_VERSION, settings)


def _names_setting(setting: object) -> bool:
    return isinstance(setting, dict) and isinstance(setting.get("key"), str) and "value" in setting


def _says_times(row: Row) -> bool:
    """Say whether all of the segment was read, in that run or one before, and both times are known. A time of 0 is written as
    null.

    A column of another type than an audit writes says nothing: the segment is read.
    """
    numbers = all(
        isinstance(row[name], int) for name in ("size_bytes", "modified_ns", "first_store_time_ms", "last_store_time_ms")
    )
    texts = all(isinstance(row[name], str) and row[name] for name in ("file", "verified_run", "edge_digest"))
    return numbers and texts and not row["problem"]


def _known(row: Row) -> KnownSegment:
    times = row["first_store_time_ms"], row["last_store_time_ms"]
    return KnownSegment(row["size_bytes"], row["modified_ns"], row["edge_digest"], *times)

"""A run's result as Prometheus reads it from a text file (exposition format 0.0.4), made from result.json alone.

Every sample carries the store's name, so that files of several runs can lie in one folder of node_exporter's textfile
collector. No label holds a topic, a key or a sentence: their number has no bound, and a store's content is hostile. What is not
known has no sample: a store that could not be audited has no `starts` and no `damaged_bytes`, not a 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from store_io.base.exit_codes import SEVERITIES

PREFIX = "rocketmq_store_audit_"
Row = dict[str, Any]


# (name, meaning, its key in a store's part of result.json), in the order in which they are written
_GAUGES = (
    (
        "exit_code",
        "0 consistent, 3 not fully audited, 10 derived data differ, 20 CommitLog damaged, messages lost or no start.",
        "code",
    ),
    ("complete", "1 if all of the store was read and is modelled, else 0.", "complete"),
    ("starts", "1 if the release would start on this copy, 0 if it would refuse; absent where that is not known.", "starts"),
    ("lost_messages", "Valid messages of the copy that consumers would not get after a start.", "lost_messages"),
    ("lost_bytes", "Bytes of the messages that consumers would not get after a start.", "lost_bytes"),
    (
        "emptied",
        "1 if something proves that the CommitLog held messages that are gone, from its end or altogether, else 0.",
        "emptied",
    ),
    (
        "earlier_messages",
        "Valid messages of this store in the earlier audit that saw its log reach furthest; absent without one.",
        "earlier_messages",
    ),
    ("lacks_messages", "Messages that other copies of its replica group hold and this one lacks.", "lacks_messages"),
    ("diverged", "1 if another copy of its group holds other messages at the same physical offsets, else 0.", "diverged"),
    ("truncate_at", "Physical offset, in bytes, at which the CommitLog would end after a start.", "truncate_at"),
    ("messages", "Valid messages in the copy.", "messages"),
    ("segments", "CommitLog segments.", "segments"),
    ("commitlog_bytes", "Length of all CommitLog segments together.", "commitlog_bytes"),
    ("damaged_extents", "Damaged byte ranges of the CommitLog.", "damaged_extents"),
    ("damaged_bytes", "Damaged bytes of the CommitLog.", "damaged_bytes"),
    ("unverified_bytes", "Length of the CommitLog segments that no run of this result has fully read.", "unverified_bytes"),
    ("findings_dropped", "Disagreements beyond the bound on findings, counted only.", "findings_dropped"),
    ("read_bytes", "Bytes read of the store.", "bytes_read"),
    ("duration_seconds", "Duration of this store's audit.", "seconds"),
)


def prometheus_text(result: Row, ended_at: float) -> str:
    """The whole file.

    result: as result.json holds it.
    ended_at: seconds since 1970.
    """
    return "".join(_lines(result, ended_at))


def _lines(result: Row, ended_at: float) -> Iterator[str]:
    stores = [({"store": store["name"]}, store) for store in result["stores"]]
    versions = {key: result.get(key) for key in ("tool_version", "rules_version")}
    problems = len(result.get("problems") or ())
    info = [({**name, "release": store.get("release"), **versions}, 1) for name, store in stores]
    yield from _family("info", "Versions by which the store was audited; always 1.", info)
    ended = "When the last audit ended, whatever it found, in seconds since 1970."
    yield from _family("last_run_timestamp_seconds", ended, [(name, round(ended_at, 3)) for name, _ in stores])
    unwritten = "Results of the last run that could not be written."
    yield from _family("output_problems", unwritten, [(name, problems) for name, _ in stores])
    for metric, meaning, key in _GAUGES:
        known = [(name, _value(store, key)) for name, store in stores]
        yield from _family(metric, meaning, [(name, number) for name, number in known if number is not None])
    severities = [
        ({**name, "severity": severity}, (store.get("counts") or {}).get(severity, 0))
        for name, store in stores
        for severity in SEVERITIES
    ]
    yield from _family("findings", "Findings by severity.", severities)


def _value(store: Row, key: str) -> Any:
    """Return a store's value for a metric, or None if it is not known.

    A store that does not start has no known loss of a start.
    """
    if key == "earlier_messages":
        return (store.get("earlier") or {}).get("messages")
    return None if key.startswith("lost_") and not store.get("starts") else store.get(key)


def _family(name: str, meaning: str, samples: Sequence[tuple[Row, float]]) -> Iterator[str]:
    """Yield the lines of one metric; no lines without a sample."""
    if not samples:
        return
    yield f"# HELP {PREFIX}{name} {_escaped(meaning, quoted=False)}\n# TYPE {PREFIX}{name} gauge\n"
    for labels, number in samples:
        shown = ",".join(f'{key}="{_escaped(value, quoted=True)}"' for key, value in labels.items() if value is not None)
        yield f"{PREFIX}{name}{{{shown}}} {_number(number)}\n"


def _number(value: float) -> str:
    return str(int(value)) if isinstance(value, bool) else repr(value)


def _escaped(text: object, quoted: bool) -> str:
    """Escape a text for the exposition format: backslash and line feed everywhere, the quote in label values."""
    escaped = str(text).replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.replace('"', '\\"') if quoted else escaped

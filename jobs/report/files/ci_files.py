"""A run's result for other tools, made from result.json alone: Markdown and JUnit's XML for CI, metrics for Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar
from xml.etree import ElementTree

from jobs.report.texts.run_words import exit_meaning
from jobs.report.texts.safety_text import SHORT
from jobs.report.texts.text import printable, seconds_text
from schemas.advice import exit_code_of
from schemas.rows import DEFAULT, NAMED
from store_io.base.exit_codes import CONSISTENT, SEVERITIES, rank
from store_io.base.wording import bytes_text, count_text
from store_io.outcome.safety import Safety, is_unsafe

ROWS = 500  # a summary page has its limits
_NAME, _VERDICT, _STEP = 100, 600, 300
_CASE_STEP = 2000  # characters of a step in JUnit's text
_MARKUP = re.compile(r"[^\w\s,.;%'/…-]|_", re.ASCII)
_SUITE = "RocketMQ store audit"
PREFIX = "rocketmq_store_audit_"
T = TypeVar("T")


def _metric(meaning: str) -> Mapping[str, str]:
    """Return the metadata of a field that is a metric."""
    return {"meaning": meaning}


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of a store, as result.json has it."""

    step: str
    text: str
    command: str | None


@dataclass(frozen=True, slots=True)
class _Store:
    """A store's part of result.json, where null is None. Metrics are written in this order.

    causes: of its gaps. What a start loses is None of a store that does not start.
    """

    name: str
    verdict: str
    answer: str
    safety: str
    release: str
    release_from: str
    settings_from: str
    location: str
    incomplete: Sequence[str]
    causes: Sequence[str]
    steps: Sequence[_Step]
    counts: Mapping[str, int]
    exit_code: int = field(
        metadata=_metric(
            "0 consistent, 3 not fully audited, 10 derived data differ, 20 CommitLog damaged, messages lost or no start."
        )
    )
    complete: bool = field(metadata=_metric("1 if all of the store was read and is modelled, else 0."))
    starts: bool | None = field(
        metadata=_metric("1 if the release would start on this copy, 0 if it would refuse; absent where that is not known.")
    )
    unsafe: bool | None = field(
        metadata=_metric("1 if the copy is not safe to start, as the pages count it, else 0; absent where that is not known.")
    )
    lost_messages: int | None = field(metadata=_metric("Valid messages of the copy that consumers would not get after a start."))
    lost_bytes: int | None = field(metadata=_metric("Bytes of the messages that consumers would not get after a start."))
    emptied: bool | None = field(
        metadata=_metric(
            "1 if something proves that the CommitLog held messages that are gone, from its end or altogether, else 0."
        )
    )
    earlier_messages: int | None = field(
        metadata=_metric("Valid messages of this store in the earlier audit that saw its log reach furthest; absent without one.")
    )
    changed_segments: int | None = field(
        metadata=_metric(
            "CommitLog segments whose bytes are not those that an earlier audit read under the same modification time."
        )
    )
    lacks_messages: int | None = field(
        metadata=_metric("Messages that other copies of its replica group hold and this one lacks.")
    )
    diverged: bool | None = field(
        metadata=_metric("1 if another copy of its group holds other messages at the same physical offsets, else 0.")
    )
    truncate_at: int | None = field(
        metadata=_metric("Physical offset, in bytes, at which the CommitLog would end after a start.")
    )
    messages: int | None = field(metadata=_metric("Valid messages in the copy."))
    segments: int | None = field(metadata=_metric("CommitLog segments."))
    commitlog_bytes: int | None = field(metadata=_metric("Length of all CommitLog segments together."))
    damaged_extents: int | None = field(metadata=_metric("Damaged byte ranges of the CommitLog."))
    damaged_bytes: int | None = field(metadata=_metric("Damaged bytes of the CommitLog."))
    unverified_bytes: int | None = field(
        metadata=_metric("Length of the CommitLog segments that no run of this result has fully read.")
    )
    findings_dropped: int = field(metadata=_metric("Disagreements beyond the bound on findings, counted only."))
    read_bytes: int = field(metadata=_metric("Bytes read of the store."))
    duration_seconds: float = field(metadata=_metric("Duration of this store's audit."))

    @property
    def is_error(self) -> bool:
        """Say whether a gap has earned the store's code: it says nothing of the store."""
        return self.exit_code in {exit_code_of(cause) for cause in self.causes} - {CONSISTENT}

    @property
    def fails(self) -> bool:
        """Say whether the store is a failure or an error of a test suite."""
        return self.exit_code != CONSISTENT or bool(self.diverged)


@dataclass(frozen=True, slots=True)
class _Run:
    """A run's result.json."""

    run_id: str
    exit_code: int
    started_at: str
    tool_version: str
    rules_version: str
    seconds: float
    bytes_read: int
    tables: str | None
    problems: Sequence[str]
    stores: Sequence[_Store]


def _read(result: Mapping[str, Any]) -> _Run:
    """Return what result.json holds. It has all of its keys, however the run ended."""
    return _made(_Run, {**result, "stores": [_made(_Store, _columns(row)) for row in result["stores"]]})


def _columns(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a store's part of result.json with the metrics that have another name there, or are made of several keys."""
    return {
        **row,
        "steps": [_made(_Step, step) for step in row["steps"]],
        "causes": [gap["cause"] for gap in row["gaps"]],
        "exit_code": row["code"],
        "unsafe": None if row["safety"] == Safety.UNKNOWN else is_unsafe(row["safety"]),
        "earlier_messages": row["earlier"]["messages"] if row["earlier"] is not None else None,
        "read_bytes": row["bytes_read"],
        "duration_seconds": row["seconds"],
        **({} if row["starts"] else {"lost_messages": None, "lost_bytes": None}),
    }


def _made(shape: type[T], row: Mapping[str, Any]) -> T:
    """Return a value whose fields are keys of a JSON object."""
    return shape(**{one.name: row[one.name] for one in fields(shape)})  # type: ignore[arg-type]


def summary_markdown(result: Mapping[str, Any]) -> str:
    """Return the run's result as a Markdown file. result: as result.json holds it."""
    return "\n".join(_lines(_read(result))) + "\n"


def _lines(run: _Run) -> Iterator[str]:
    stores = sorted(run.stores, key=lambda store: (-rank(store.exit_code), -(store.lost_messages or 0), store.name))
    yield f"## RocketMQ store audit: exit code {run.exit_code} ({exit_meaning(run.exit_code)})"
    yield ""
    for sentence in (*_assumed(stores), *map(_text, run.problems)):
        yield f"* {sentence}"
    unfinished = sum(not store.complete for store in stores)
    if unfinished:
        yield f"* Not audited completely: {count_text(unfinished, 'store')} of {len(stores):,}"
    yield f"* {_run_line(run)}"
    yield ""
    severities = " | ".join(SEVERITIES)
    yield f"| code | store | release | answer | safe to start? | lost messages | {severities} | verdict | first step |"
    yield "|---:|---|---|---|---|---:|" + "---:|" * len(SEVERITIES) + "---|---|"
    for store in stores[:ROWS]:
        lost = f"{store.lost_messages:,}" if store.lost_messages is not None else "not known"
        counts = [f"{store.counts.get(severity, 0):,}" for severity in SEVERITIES]
        name, safe = f"<code>{_text(store.name, _NAME)}</code>", SHORT.get(store.safety, "not known")
        first = next((_text(step.text, _STEP) for step in store.steps), "")
        answer, verdict = f"<code>{_text(store.answer)}</code>", _text(store.verdict, _VERDICT)
        cells = str(store.exit_code), name, _text(store.release), answer, safe, lost, *counts, verdict, first
        yield f"| {' | '.join(cells)} |"
    if len(stores) > ROWS:
        yield ""
        yield f"and {count_text(len(stores) - ROWS, 'more store')}: result.json has all"


def _assumed(stores: Sequence[_Store]) -> Iterator[str]:
    """Yield a line on each premise of the verdicts that nobody named."""
    assumed = [store for store in stores if store.release_from != NAMED]
    if assumed:
        releases = ", ".join(sorted({_text(store.release) for store in assumed}))
        yield f"Release {releases} was assumed for {count_text(len(assumed), 'store')}: nobody named a known one (`--release`)"
    unnamed = sum(store.settings_from == DEFAULT for store in stores)
    if unnamed:
        who = "nobody named its `broker.conf` (`--broker-conf`)"
        yield f"RocketMQ's defaults were assumed for {count_text(unnamed, 'store')}: {who}"


def _run_line(run: _Run) -> str:
    read = f"{bytes_text(run.bytes_read)} read in {seconds_text(run.seconds)}"
    began = run.started_at.replace("T", " ").rstrip("Z")
    versions = f"tool {_text(run.tool_version)}, rules {_text(run.rules_version)}"
    return f"{count_text(len(run.stores), 'store')}, {read}; run <code>{_text(run.run_id)}</code> of {began} UTC; {versions}"


def _text(value: object, limit: int = 0) -> str:
    """Return text that stays text in Markdown, in HTML and in a cell of a table."""
    shown = _MARKUP.sub(_entity, printable(value, limit))
    return shown.replace("//", "/<span>/</span>").replace("www.", "www<span>.</span>")


def _entity(match: re.Match[str]) -> str:
    character = match[0]
    if not character.isascii():
        return character
    return "<span>@</span>" if character == "@" else f"&#{ord(character)};"


def junit_xml(result: Mapping[str, Any]) -> str:
    """Return the run's result as an XML file of JUnit's form. result: as result.json holds it."""
    run = _read(result)
    errors = sum(store.is_error for store in run.stores) + bool(run.problems)
    failures = sum(not store.is_error and store.fails for store in run.stores)
    tests = len(run.stores) + bool(run.problems)
    count = {"tests": str(tests), "failures": str(failures), "errors": str(errors), "skipped": "0"}
    time = f"{run.seconds:.3f}"
    root = ElementTree.Element("testsuites", {"name": _SUITE, **count, "time": time})
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": _SUITE, **count, "time": time, "timestamp": run.started_at.rstrip("Z")}
    )
    properties = ElementTree.SubElement(suite, "properties")
    for key in ("run_id", "tool_version", "rules_version", "exit_code", "tables"):
        if (value := getattr(run, key)) is not None:
            ElementTree.SubElement(properties, "property", {"name": key, "value": printable(value)})
    for store in run.stores:
        _case(suite, store)
    if run.problems:
        case = ElementTree.SubElement(suite, "testcase", {"classname": _SUITE, "name": "results of the run", "time": "0"})
        _verdict(case, "error", "not written", printable(run.problems[0]), "\n".join(map(printable, run.problems)))
    ElementTree.indent(root, " ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, store: _Store) -> None:
    named = {"classname": _SUITE, "name": printable(store.name), "time": f"{store.duration_seconds:.3f}"}
    case = ElementTree.SubElement(suite, "testcase", named)
    if not store.fails:
        return
    lines = [
        f"{key}: {printable(getattr(store, key))}"
        for key in ("verdict", "answer", "safety", "release", "release_from", "location")
    ]
    lines += [f"lost_messages: {store.lost_messages:,}"] if store.lost_messages is not None else []
    lines += [f"findings of severity {kind}: {store.counts[kind]:,}" for kind in SEVERITIES if store.counts.get(kind)]
    lines += [f"incomplete: {printable(sentence)}" for sentence in store.incomplete]
    lines += _step_lines(store)
    kind = "error" if store.is_error else "failure"
    name = f"exit code {store.exit_code}" if store.exit_code else "diverged"
    _verdict(case, kind, name, printable(store.verdict), "\n".join(lines))


def _step_lines(store: _Store) -> Iterator[str]:
    """Yield the steps under their numbers, each command on a line of its own."""
    for number, step in enumerate(store.steps, 1):
        yield f"{number}. {step.step}: {printable(step.text, _CASE_STEP)}"
        if step.command:
            yield f"   {printable(step.command)}"


def _verdict(case: ElementTree.Element, kind: str, name: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, kind, {"type": name, "message": message}).text = text


def prometheus_text(result: Mapping[str, Any], ended_at: float) -> str:
    """Return the run's result as a file of metrics in Prometheus' form.

    result: as result.json holds it.
    ended_at: seconds since 1970.
    """
    return "".join(_samples(_read(result), ended_at))


def _samples(run: _Run, ended_at: float) -> Iterator[str]:
    stores = [({"store": store.name}, store) for store in run.stores]
    versions = {"tool_version": run.tool_version, "rules_version": run.rules_version}
    info = [({**name, "release": store.release, **versions}, 1) for name, store in stores]
    yield from _family("info", "Versions by which the store was audited; always 1.", info)
    ended = "When the last audit ended, whatever it found, in seconds since 1970."
    yield from _family("last_run_timestamp_seconds", ended, [(name, round(ended_at, 3)) for name, _ in stores])
    unwritten = "Results of the last run that could not be written."
    yield from _family("output_problems", unwritten, [(name, len(run.problems)) for name, _ in stores])
    answers = [({**name, "answer": store.answer}, 1) for name, store in stores]
    yield from _family("answer", "What to do with the copy, by the label; always 1.", answers)
    for metric in fields(_Store):
        if meaning := metric.metadata.get("meaning"):
            known = [(name, number) for name, store in stores if (number := getattr(store, metric.name)) is not None]
            yield from _family(metric.name, meaning, known)
    severities = [
        ({**name, "severity": severity}, store.counts.get(severity, 0)) for name, store in stores for severity in SEVERITIES
    ]
    yield from _family("findings", "Findings by severity.", severities)


def _family(name: str, meaning: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """Yield the lines of one metric; no lines without a sample."""
    if not samples:
        return
    yield f"# HELP {PREFIX}{name} {_escaped(meaning, quoted=False)}\n# TYPE {PREFIX}{name} gauge\n"
    for labels, number in samples:
        shown = ",".join(f'{key}="{_escaped(value, quoted=True)}"' for key, value in labels.items())
        yield f"{PREFIX}{name}{{{shown}}} {_number(number)}\n"


def _number(value: float) -> str:
    return str(int(value)) if isinstance(value, bool) else repr(value)


def _escaped(text: object, quoted: bool) -> str:
    """Escape a text for the exposition format: backslash and line feed everywhere, the quote in label values."""
    escaped = str(text).replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.replace('"', '\\"') if quoted else escaped

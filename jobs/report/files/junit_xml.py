"""A run's result as JUnit's XML, which CI servers show: a test case per store; made from result.json alone.

A store of code 10 or 20 is a failure, and so is a copy that has diverged from another. A store whose code comes from a gap is
an error, which says nothing of the store.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from jobs.report.texts.text import printable
from schemas.advice import exit_code_of
from store_io.base.exit_codes import CONSISTENT, SEVERITIES

_SUITE = "RocketMQ store audit"
Row = dict[str, Any]


def junit_xml(result: Row) -> str:
    """The whole file. result: as result.json holds it."""
    stores, problems = result["stores"], result.get("problems") or ()
    errors = sum(map(_is_error, stores)) + bool(problems)
    failures = sum(not _is_error(store) and _fails(store) for store in stores)
    count = {"tests": str(len(stores) + bool(problems)), "failures": str(failures), "errors": str(errors), "skipped": "0"}
    time = f"{result.get('seconds') or 0:.3f}"
    root = ElementTree.Element("testsuites", {"name": _SUITE, **count, "time": time})
    started = str(result["started_at"]).rstrip("Z")
    suite = ElementTree.SubElement(root, "testsuite", {"name": _SUITE, **count, "time": time, "timestamp": started})
    properties = ElementTree.SubElement(suite, "properties")
    for key in ("run_id", "tool_version", "rules_version", "exit_code", "tables"):
        if result.get(key) is not None:
            ElementTree.SubElement(properties, "property", {"name": key, "value": printable(result[key])})
    for store in stores:
        _case(suite, store)
    if problems:
        case = ElementTree.SubElement(suite, "testcase", {"classname": _SUITE, "name": "results of the run", "time": "0"})
        _verdict(case, "error", "not written", printable(problems[0]), "\n".join(map(printable, problems)))
    ElementTree.indent(root, " ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _is_error(store: Row) -> bool:
    """Whether a gap has earned the store's code: it says nothing of the store."""
    return store["code"] in {exit_code_of(gap["cause"]) for gap in store["gaps"]} - {CONSISTENT}


def _fails(store: Row) -> bool:
    return store["code"] != 0 or bool(store.get("diverged"))


def _case(suite: ElementTree.Element, store: Row) -> None:
    named = {"classname": _SUITE, "name": printable(store["name"]), "time": f"{store.get('seconds') or 0:.3f}"}
    case = ElementTree.SubElement(suite, "testcase", named)
    if not _fails(store):
        return
    counts = store.get("counts") or {}
    lines = [f"{key}: {printable(store.get(key))}" for key in ("verdict", "safety", "release", "release_from", "location")]
    lines += (
        [f"lost_messages: {store['lost_messages']:,}"] if store.get("starts") and store.get("lost_messages") is not None else []
    )
    lines += [f"findings of severity {severity}: {counts[severity]:,}" for severity in SEVERITIES if counts.get(severity)]
    lines += [f"incomplete: {printable(sentence)}" for sentence in store.get("incomplete") or ()]
    kind = "error" if _is_error(store) else "failure"
    name = f"exit code {store['code']}" if store["code"] else "diverged"
    _verdict(case, kind, name, printable(store["verdict"]), "\n".join(lines))


def _verdict(case: ElementTree.Element, kind: str, name: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, kind, {"type": name, "message": message}).text = text

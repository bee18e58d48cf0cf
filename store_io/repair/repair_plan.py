"""plan.json as a repair takes it: text from anywhere, so every part is checked before it is used.

Nothing in it is ever used as a place to write to. The audit of the copy must find the same files with the same digests, the same
release and settings, and the same decision of the broker.

A digest here shows what changed by accident. It is folded from CRC-32s, which can be forged, so it is no signature (`manifest`
has SHA-256s). A repair relies on its own audit of its own copy: other bytes with the same digest are repaired as what they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from schemas.layouts.store_names import COMMITLOG
from schemas.outcome import Outcome
from schemas.repair import RepairStep
from schemas.rows import NAMED, Row
from store_io.base.errors import StoreError, UsageError, parsed
from store_io.base.java.java_properties import property_line
from store_io.base.paths import is_inner_path
from store_io.broker.releases import ALL_DEFAULTS, broker_rules, known_release
from store_io.broker.settings.day_settings import DAY_DEFAULTS, named_settings
from store_io.first_day.after_start import Edge, Leaving
from store_io.first_day.cleaning import next_hour
from store_io.first_day.cleaning_rules import CleaningRules, cleaning_rules, hours_of, ledger_cleaning_rules
from store_io.outcome.plan_writer import broker_section
from store_io.repair.repair_documents import plan_document
from store_io.repair.repair_steps import ACTIONS
from store_io.source.store_dir import DLEDGER

BROKER, SALVAGE = POLICIES = "broker", "salvage"
PLAN_BYTES = 1 << 30
_KEYS = {
    "schema_version": int, "store": str, "release": str, "complete": bool, "settings": dict, "inputs": list, "steps": list,
}  # fmt: skip
_ACTIONS = ("keep", "truncate", "delete", "rebuild")


@dataclass(frozen=True)
class PlannedSteps:
    """The steps of a repair by one policy. options: of the command that has them."""

    steps: tuple[RepairStep, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepairPlan:
    """A plan whose shape is right and whose paths lie inside a store.

    inputs: path -> (size, digest).
    settings: all that the plan names, defaults included; origins: of the same, "broker.conf", "default" or "inferred".
    sha256: of the plan's own bytes.
    assumed: nobody named the release.
    repair: by policy; without one whose steps are not known.
    answer, to_do: the audit's answer, and its steps as (name, sentence); "" and none in a plan of an older version.
    leaving: what retention deletes in the first day; None if the plan does not say it.
    edges: of the log's files, in a plan that a repair leaves.
    day: settings of the first day that are not their defaults.
    """

    store: str
    release: str
    settings: Mapping[str, Any]
    origins: Mapping[str, str]
    inputs: Mapping[str, tuple[int, str]]
    broker: Row
    sha256: str
    assumed: bool = False
    rebuilds: bool = False
    repair: Mapping[str, PlannedSteps] = field(default_factory=dict)
    answer: str = ""
    to_do: tuple[tuple[str, str], ...] = ()
    leaving: Leaving | None = None
    edges: tuple[Edge, ...] = ()
    day: Mapping[str, Any] = field(default_factory=dict)

    @property
    def broker_conf(self) -> str | None:
        """Return a properties file with this plan's settings; None if they came from the files themselves."""
        if "inferred" in self.origins.values():
            return None
        named = {key: value for key, value in self.settings.items() if self.origins[key] == "broker.conf"}
        return properties_text({**named, **self.day})

    @property
    def cleaning(self) -> CleaningRules:
        """Return how the broker deletes segments: by its own service, or by DLedger's if the log has no older part."""
        tops = {path.partition("/")[0] for path in self.inputs}
        of_ledger = COMMITLOG not in tops and any(map(DLEDGER.fullmatch, tops))
        return (ledger_cleaning_rules if of_ledger else cleaning_rules)(broker_rules(self.release), {**DAY_DEFAULTS, **self.day})

    def with_day_of(self, broker_conf: str | None) -> RepairPlan:
        """Return the plan with the settings of the first day that a broker.conf has; itself without one."""
        if broker_conf is None:
            return self
        return replace(self, day=named_settings(broker_conf, broker_rules(self.release)))


def properties_text(settings: Mapping[str, Any]) -> str:
    """Return a properties file with these values."""
    lines = []
    for key, value in sorted(settings.items()):
        lines.append(property_line(key, str(value).lower() if isinstance(value, bool) else str(value)))
    return "\n".join(lines) + "\n"


def plan_text(outcome: Outcome) -> str:
    """Return an audit's plan as `read_plan` takes it; lists that lie packed in it are written as lists."""
    return json.dumps(plan_document(outcome), default=list)


def read_plan(data: bytes) -> RepairPlan:
    """Read a plan. Raises UsageError if the text is no plan, StoreError if no repair can follow it."""
    try:
        plan = parsed(partial(json.loads, parse_constant=_no_constant), data.decode("utf-8"))
    except ValueError as error:
        raise UsageError(f"the plan is no JSON: {error}") from None
    if not isinstance(plan, dict):
        raise UsageError("the plan is no JSON object")
    for key, kind in _KEYS.items():
        if type(plan.get(key)) is not kind:
            raise UsageError(f"the plan has no {key}, or one of the wrong kind")
    if plan["schema_version"] != 1:
        raise UsageError(f"the plan is of schema version {plan['schema_version']}, only 1 is known")
    if known_release(plan["release"]) != plan["release"]:
        raise UsageError(f"release {plan['release']!r} of the plan: no release that an audit names in a plan")
    inputs = _inputs(plan["inputs"])
    _check_steps(plan["steps"])
    _check_settings(plan["settings"])
    broker = plan.get("broker")
    if broker is not None and not isinstance(broker, dict):
        raise UsageError("the plan's broker is no object")
    if not plan["complete"]:
        raise StoreError(
            "the plan is incomplete: its audit could not read or understand everything, so nothing is repaired by it"
        )
    if broker is None:
        raise StoreError("the plan does not say what a broker would do, so nothing is repaired by it")
    _check_broker(broker)
    settings, origins = ({key: row[name] for key, row in plan["settings"].items()} for name in ("value", "from"))
    sha256, assumed = hashlib.sha256(data).hexdigest(), plan.get("release_from", NAMED) != NAMED
    steps, rebuilds = _repair(plan.get("repair")), any(row["action"] == "rebuild" for row in plan["steps"])
    answer, to_do = _answer(plan)
    return RepairPlan(
        plan["store"], plan["release"], settings, origins, inputs, broker, sha256, assumed, rebuilds, steps, answer, to_do,
        _leaving(plan.get("first_day")), _edges(plan.get("edges", [])), _day(plan.get("first_day")),
    )  # fmt: skip


def _leaving(first_day: Any) -> Leaving | None:
    """Return what retention deletes, at once, later in the day, or if the disk is full. None if that is not known."""
    if first_day is None:
        return None
    if not isinstance(first_day, dict) or not isinstance(first_day.get("retention"), dict | None):
        raise UsageError("the plan's first_day is no object, or its retention is none")
    retention = first_day.get("retention")
    if retention is None:
        return None
    paths = [retention.get(key) for key in ("at_once", "in_delete_when", "if_disk_full")]
    if not all(isinstance(part, list) for part in paths):
        raise UsageError("the plan's retention does not list what is deleted")
    at_once, in_delete_when, if_disk_full = (frozenset(map(checked_path, part)) for part in paths)
    as_of, timezone, hours = first_day.get("as_of"), first_day.get("timezone"), retention.get("reserved_hours")
    if not isinstance(as_of, str) or not isinstance(timezone, str) or type(hours) is not int:
        raise UsageError("the plan's first_day does not say as_of, timezone and reserved_hours")
    try:
        at_ms = int(datetime.fromisoformat(as_of).timestamp() * 1000)
        next_hour(at_ms, hours_of("0"), timezone)
    except (ValueError, OverflowError):
        raise UsageError("the plan's first_day has an as_of that is no time") from None
    return Leaving(at_once, in_delete_when, if_disk_full, at_ms, timezone, hours, first_day.get("disk_used") is not None)


def _day(first_day: Any) -> Mapping[str, Any]:
    settings = first_day.get("settings", {}) if isinstance(first_day, dict) else {}
    if not isinstance(settings, dict) or any(type(DAY_DEFAULTS.get(key)) is not type(value) for key, value in settings.items()):
        raise UsageError("the plan's first_day has settings that are not known, or of the wrong kind")
    return settings


def _edges(rows: Any) -> tuple[Edge, ...]:
    if not isinstance(rows, list):
        raise UsageError("the plan's edges are no list")
    found = []
    for row in rows:
        numbers: list[Any] = [row.get("start"), row.get("end")] if isinstance(row, dict) else []
        if not numbers or any(type(number) is not int for number in numbers) or not isinstance(row.get("digest"), str):
            raise UsageError("an edge of the plan has no start, no end, or no digest")
        if not 0 <= numbers[0] < numbers[1]:
            raise UsageError(f"an edge of the plan goes from {numbers[0]} to {numbers[1]}")
        found.append(Edge(checked_path(row.get("file")), numbers[0], numbers[1], row["digest"]))
    return tuple(found)


def _answer(plan: Row) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the audit's answer and its steps; nothing of a plan without them. Raises UsageError for another form."""
    answer, rows = plan.get("answer", ""), plan.get("to_do", [])
    if not isinstance(answer, str) or not isinstance(rows, list):
        raise UsageError("the plan's answer is no text, or its to_do is no list")
    found = []
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("step"), str) or not isinstance(row.get("text"), str):
            raise UsageError("a row of the plan's to_do has no step, or no text")
        found.append((row["step"], row["text"]))
    return answer, tuple(found)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def checked_path(path: Any) -> str:
    """Return the path, if it is one inside a store. Raises UsageError."""
    if not isinstance(path, str) or not is_inner_path(path):
        raise UsageError(f"the plan names {path!r}, which is no path inside a store")
    return path


def _inputs(rows: list[Any]) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for row in rows:
        if not isinstance(row, dict) or type(row.get("size")) is not int or not isinstance(row.get("digest"), str):
            raise UsageError("an input of the plan has no size, or no digest")
        path = checked_path(row.get("file"))
        if path in found or row["size"] < 0 or not row["digest"]:
            raise UsageError(f"the plan's input {path!r} is listed twice, or its size or digest is invalid")
        found[path] = (row["size"], row["digest"])
    return found


def _check_steps(rows: list[Any]) -> None:
    for row in rows:
        if not isinstance(row, dict) or row.get("action") not in _ACTIONS:
            raise UsageError("a step of the plan has an action other than " + ", ".join(_ACTIONS))
        checked_path(row.get("file"))
        for key in ("start", "end"):
            if row.get(key) is not None and (type(row[key]) is not int or row[key] < 0):
                raise UsageError(f"a step of the plan has {key} {row[key]!r}")


def _repair(section: Any) -> dict[str, PlannedSteps]:
    """Return the steps by policy, of policies whose steps the plan has."""
    if section is None:
        return {}
    if not isinstance(section, dict) or any(not isinstance(section.get(policy), dict) for policy in POLICIES):
        raise UsageError(f"the plan's repair has not the policies {BROKER} and {SALVAGE}")
    found = {}
    for policy in POLICIES:
        part = section[policy]
        if part.get("refused") is not None:
            continue
        rows, options = part.get("steps"), part.get("options", [])
        if not isinstance(rows, list):
            raise UsageError(f"the plan's repair by policy {policy} has no steps")
        if not isinstance(options, list) or not all(isinstance(word, str) for word in options):
            raise UsageError(f"the plan's repair by policy {policy} has options that are no words")
        steps = tuple(_repair_step(number, row) for number, row in enumerate(rows, 1))
        found[policy] = PlannedSteps(steps, tuple(options))
    return found


def _repair_step(number: int, row: Any) -> RepairStep:
    if not isinstance(row, dict) or row.get("number") != number or row.get("action") not in ACTIONS:
        raise UsageError(f"step {number} of the plan's repair has another number, or an action that is not known")
    file = "" if row.get("file") == "" else checked_path(row.get("file"))
    start, end, kept, lost, sha256 = row.get("start"), row.get("end"), row.get("kept"), row.get("lost"), row.get("sha256", "")
    wrong = "a number of the wrong kind"
    if not isinstance(kept, dict) or not isinstance(lost, dict):
        raise UsageError(f"step {number} of the plan's repair has {wrong}")
    known = [*kept.values(), *lost.values(), *(place for place in (start, end) if place is not None)]
    if any(type(n) is not int or n < 0 for n in known):
        raise UsageError(f"step {number} of the plan's repair has {wrong}")
    if not isinstance(sha256, str):
        raise UsageError(f"step {number} of the plan's repair has a digest of the wrong kind")
    if (start is None) != (end is None):
        raise UsageError(f"step {number} of the plan's repair has one end of a range")
    return RepairStep(row["action"], file, start, end, str(row.get("reason", "")), kept, lost, sha256)


def _check_settings(rows: dict[str, Any]) -> None:
    for key, row in rows.items():
        if key not in ALL_DEFAULTS or not isinstance(row, dict) or type(row.get("value")) is not type(ALL_DEFAULTS[key]):
            raise UsageError(f"the plan's setting {key!r} is not known, or of the wrong kind")
        if row.get("from") not in ("broker.conf", "default", "inferred"):
            raise UsageError(f"the plan's setting {key!r} comes from {row.get('from')!r}")


def _check_broker(broker: Row) -> None:
    if type(broker.get("starts")) is not bool:
        raise UsageError("the plan's broker does not say whether it starts")
    if not broker["starts"]:
        return
    if type(broker.get("truncate_at")) is not int or broker["truncate_at"] < 0:
        raise UsageError(f"the plan's truncate_at is {broker.get('truncate_at')!r}")
    if not isinstance(broker.get("deleted_files"), list):
        raise UsageError("the plan's broker has no deleted_files")
    for path in broker["deleted_files"]:
        checked_path(path)


def other_settings(plan: RepairPlan, given: Mapping[str, Any]) -> list[str]:
    """Return sentences on settings with which the plan was not made: those of a broker.conf, and defaults for all others."""
    wrong = []
    for key in sorted(plan.settings.keys() | given.keys()):
        then, now = plan.settings.get(key, ALL_DEFAULTS[key]), given.get(key, ALL_DEFAULTS[key])
        if then != now:
            named = f"{key}={now}" if key in given else f"does not name {key}, so that its default {now} holds"
            wrong.append(f"{named}; the plan was made with {then} ({plan.origins.get(key, 'default')})")
    return wrong


def differences(plan: RepairPlan, found: Outcome) -> list[str]:
    """Return sentences on differences between the audit of the copy and the plan."""
    inputs = {row["file"]: (row["size"], row["digest"]) for row in found.plan.inputs}
    wrong = []
    for path in sorted(plan.inputs.keys() | inputs.keys()):
        then, now = plan.inputs.get(path), inputs.get(path)
        if then is None or now is None:
            wrong.append(f"{path}: {'is not in the plan' if then is None else 'is in the plan and not in the copy'}")
        elif then != now:
            what = f"{then[0]} bytes then, {now[0]} now" if then[0] != now[0] else "other bytes than the plan was made from"
            wrong.append(f"{path}: {what}: audit again")
    if plan.release != found.release:
        wrong.append(f"release: {plan.release} in the plan, {found.release} asked for")
    for key, then in sorted(plan.settings.items()):
        now = found.plan.settings[key].value if key in found.plan.settings else None
        if then != now:
            wrong.append(f"settings.{key}: {then!r} in the plan, {now!r} in the repair's own audit")
    broker = broker_section(found.effect) if found.effect is not None else {}
    for key in ("starts", "truncate_at", "min_phy_offset", "exit", "deleted_files"):
        then, now = plan.broker.get(key), broker.get(key)
        if then != now:
            wrong.append(f"broker.{key}: {then!r} in the plan, {now!r} in the repair's own audit")
    return wrong

"""A store repaired by the product's own command, and what it then must serve, worked out without the product.

`valid_records` looks at every byte of a CommitLog for itself: a record is valid in a copy when its fields add up, it has the
CRCs that it says, it says the offset at which it stands, and it lies in no other valid record.

    python -m tests.broker_truth.harness.repairs TABLE.md [PREFIX ...]

repairs each case of the corpus by both policies, starts the release that recovered it on each result, and writes the table:
messages valid in the copy, served after the broker's own recovery, and served of the two repaired stores. CORPUS_ALSO as in
tests/support/stores/corpus_tools.py.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs import entry
from store_io.audit.audit_store import run_local
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation
from tests.broker_truth.harness.real_broker import PREPARED, ROLLBACK, Jvm, Jvms, Served, batch_topics
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Record, decode, property_crc_text
from tests.support.stores.corpus_tools import Case

POLICIES = ("broker", "salvage")
_PROPERTY_CRC = re.compile(rb"__CRC32#\x01([0-9]{10})\x02\Z")
_MAGIC = re.compile(rb"\xda\xa3\x20[\xa7\xab]")

Key = tuple[str, int, int, int]  # topic, queue id, queue offset, physical offset


@dataclass(frozen=True)
class Repaired:
    """root: the new store, None where the command did not end with 0.  plan, report: the plan's JSON, and the repair's."""

    exit_code: int
    root: Path | None
    plan: dict[str, Any]
    report: dict[str, Any]


def repair(root: Path, release: str, broker_conf: str, policy: str, target: Path, *options: str) -> Repaired:
    """Audit the store, then repair it into `target` as a user does. options: further words."""
    outcome = run_local(AuditRequest(root.name, StoreLocation(str(root)), release, broker_conf))
    plan = target.with_name(f"{target.name}.plan.json")
    plan.write_text(json.dumps(audit_plan(outcome)), "utf-8")
    code = entry.main(["repair", str(root), "--plan", str(plan), "--to", str(target), "--policy", policy, *options])
    told = target.with_name(f"{target.name}.repair.json")
    report = json.loads(told.read_text("utf-8")) if told.exists() else {}
    return Repaired(code, target if code == 0 else None, audit_plan(outcome), report)


def valid_records(root: Path) -> dict[int, tuple[Record, bytes]]:
    """Physical offset -> (record, its bytes) of all valid records of a copy's CommitLog, and of its DLedger log."""
    found: dict[int, tuple[Record, bytes]] = {}
    for path in [*sorted(root.glob("commitlog/*")), *sorted(root.glob("dledger-*/data/*"))]:
        if not (path.is_file() and len(path.name) == 20 and path.name.isdigit()):
            continue
        data, base, end = path.read_bytes(), int(path.name), 0
        for place in (match.start() - 4 for match in _MAGIC.finditer(data)):
            record = _valid(data, place, base) if place >= end else None
            if record is not None:
                end = place + record.size
                found[base + place] = record, data[place:end]
    return found


def _valid(data: bytes, position: int, base: int) -> Record | None:
    try:
        record = decode(data, position, base)
    except (ValueError, struct.error):
        return None
    if record.phy_offset != base + position or record.body and zlib.crc32(record.body) & 0x7FFFFFFF != record.body_crc:
        return None
    told = _PROPERTY_CRC.search(record.raw_properties)
    whole = data[position : position + record.size - len(told.group())] if told else b""
    return None if told and property_crc_text(zlib.crc32(whole) & 0x7FFFFFFF).encode() != told[1] else record


def in_a_queue(record: Record) -> bool:
    """Whether dispatch puts it into its topic's queue."""
    return record.transaction not in (PREPARED, ROLLBACK)


def expected(records: dict[int, tuple[Record, bytes]]) -> dict[Key, bytes]:
    """What getMessage must serve of these, but for light queues."""
    return {
        (record.topic, record.queue_id, record.queue_offset, offset): data
        for offset, (record, data) in records.items()
        if in_a_queue(record)
    }


def served(found: Served) -> dict[Key, bytes]:
    """What was served, by the place that the record tells; light queues, whose messages are those of other queues, left out."""
    return {
        (m.topic, m.queue_id, m.record.queue_offset, m.phy_offset): m.data[: m.record.size]
        for m in found.messages
        if m.record.topic == m.topic
    }


# ---- the corpus ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """One repair of a case, and what the real broker then served. missing: valid and not served.  lost: those of them that the
    broker's own recovery serves.  invalid: served and not valid in the copy.  shown: messages served, in all queues."""

    repaired: Repaired
    shown: int = 0
    missing: frozenset[Key] = frozenset()
    lost: frozenset[Key] = frozenset()
    invalid: frozenset[Key] = frozenset()
    key_misses: int = 0
    truncated: bool = False


@dataclass(frozen=True)
class Measured:
    """A case: how many segments it has, messages valid in the copy that belong in queues, what was recorded as served by its own
    recovery (None: does not start), and the repairs by policy."""

    case: Case
    segments: int
    valid: int
    own: int | None
    results: dict[str, Result]


def measure(case: Case, jvm_of: Callable[[str], Jvm], folder: Path, policies: Sequence[str] = POLICIES) -> Measured:
    """Repair one case and let real brokers serve it. All is done below `folder`."""
    root = case.unpack(folder)
    named = str(case.case["config"].get("batchCqTopics", ""))
    topics = named.split(",") if named else batch_topics(root)
    segments = sum(path.stat().st_size > 0 for path in (root / "commitlog").glob("*"))
    wanted = expected(valid_records(root))
    recorded = (case.expected.get("served") or {}).get("served")
    own: dict[Key, bytes] = {}
    if recorded is not None and "broker" in policies:
        _copy(root, folder / "own")
        with jvm_of(case.release).broker(folder / "own", case.broker_conf, topics) as broker:
            broker.begin()
            own = {key: data for key, data in served(broker.serve(keys=False)).items() if wanted.get(key) == data}
    results = {}
    for policy in policies:
        repaired = repair(root, case.release, case.broker_conf, policy, folder / policy)
        results[policy] = Result(repaired)
        if repaired.root is None:
            continue
        with jvm_of(case.release).broker(repaired.root, case.broker_conf, topics) as broker:
            loaded = broker.load()
            if loaded:
                end = broker.state()["maxPhyOffset"]
                broker.start()
                found = broker.serve()
                bridges = {bridge["phy_offset"] for bridge in repaired.report["bridges"]}
                got = {key: data for key, data in served(found).items() if key[3] not in bridges}
                results[policy] = Result(
                    repaired,
                    len(found.messages),
                    frozenset(key for key, data in wanted.items() if got.get(key) != data),
                    frozenset(key for key, data in own.items() if got.get(key) != data),
                    frozenset(got.keys() - wanted.keys()),
                    len(found.key_misses),
                    end != repaired.report["log_end"],
                )
    return Measured(case, segments, len(wanted), recorded, results)


def _copy(root: Path, target: Path) -> None:
    """Holes stay holes."""
    subprocess.run(["cp", "-r", "--sparse=always", str(root), str(target)], check=True)


def main(arguments: Sequence[str]) -> None:
    """See the module's text."""
    table, running = Path(arguments[0]), Jvms()
    rows = ["| case | valid in the copy | own recovery | `broker` | `salvage` | |", "|---|---|---|---|---|---|"]
    with running:
        for case in corpus_tools.plain_cases(*arguments[1:]):
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
                rows.append(_row(measure(case, running.of, Path(folder))))
            print(rows[-1], flush=True)
            table.write_text("\n".join(rows) + "\n", "utf-8")


def _row(measured: Measured) -> str:
    notes = []
    for policy, result in measured.results.items():
        if result.repaired.root is None:
            notes.append(f"{policy}: exit code {result.repaired.exit_code}")
        for what in ("lost", "invalid", "key_misses", "truncated"):
            found = getattr(result, what)
            if found and (what != "lost" or policy == "broker"):
                notes.append(f"{policy}: {found if isinstance(found, int) else len(found)} {what}")
    if missing := measured.results["salvage"].missing:
        notes.append(f"salvage: {len(missing)} missing")
    shown = [str(r.shown) if r.repaired.root is not None else "-" for r in measured.results.values()]
    own = "does not start" if measured.own is None else str(measured.own)
    return f"| {' | '.join([measured.case.name, str(measured.valid), own, *shown, '; '.join(notes)])} |"


if __name__ == "__main__":
    main(sys.argv[1:])

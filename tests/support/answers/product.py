"""The product as the tests call it: one store audited in this process, without Spark, and its prediction entry by entry."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from schemas.first_day import StartMoment
from schemas.layouts.consumequeue_layout import EXT_ADDRESS_BASE, EXT_ADDRESS_MAX
from schemas.outcome import Outcome
from schemas.rows import NOTE, WALK_BROKER, Finding, QueueKey
from store_io.audit.audit_store import StoreAudit, run_audit
from store_io.base.java.java_compat import divide, string_hash
from store_io.broker.message_verdict import VALID, BufferFrames, Message, check_frame
from store_io.broker.prediction import Memory, ScanId
from store_io.broker.queues.queue_state import QueueState
from store_io.broker.releases import BrokerRules
from store_io.messages.explain.explain_pointers import queues_of
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import broker_section
from store_io.source.byte_source import StoreLocation

Entry = dict[str, Any]


@dataclass
class Audited:
    """One audit. `broker`: the plan's section, None where the audit could not follow the broker."""

    root: Path
    audit: StoreAudit
    outcome: Outcome

    @property
    def broker(self) -> dict[str, Any] | None:
        """plan.json's `broker`."""
        return broker_section(self.outcome.effect) if self.outcome.effect is not None else None

    @property
    def incomplete(self) -> list[str]:
        return self.outcome.incomplete

    @property
    def findings(self) -> list[Finding]:
        return self.outcome.found.findings

    @property
    def above_note(self) -> list[Finding]:
        return [f for f in self.findings if f.severity != NOTE]

    def entries(self, memory: Memory | None = None) -> list[Entry]:
        """All ConsumeQueue and index entries of a predicted moment, else of that after load()."""
        prediction = self.audit.prediction
        assert prediction is not None and prediction.after_load is not None
        memory = memory or prediction.after_load
        reader = _Prediction(self)
        found: list[Entry] = []
        for _, queue in sorted(memory.queues.items()):
            found += reader.queue_entries(queue)
        for number, file in enumerate(memory.index):
            found += reader.index_entries(number, file)
        return found


def audit(
    root: Path,
    release: str,
    broker_conf: str | None,
    decoder: str = "fast",
    window_bytes: int = 4 << 20,
    start: StartMoment | None = None,
) -> Audited:
    """Audit the store at `root` under these rules."""
    location = StoreLocation(str(root))
    request = AuditRequest(root.name, location, release, broker_conf, decoder=decoder, window_bytes=window_bytes, start=start)
    done = run_audit(request)
    return Audited(root, done, done.outcome())


@dataclass
class _Prediction:
    """Expands what the fold keeps as runs: the records of a run are read again, one by one, by the reference check."""

    audited: Audited

    def __post_init__(self) -> None:
        self._walks: dict[ScanId, list[Message]] = {}

    @property
    def audit(self) -> StoreAudit:
        return self.audited.audit

    def walk(self, scan: ScanId) -> list[Message]:
        """The records that recovery reads in this scan, in order."""
        if scan not in self._walks:
            path = self.audited.root / self.audit.copy.loaded.segments[scan.segment].path
            data = path.read_bytes()
            frames, position, found = BufferFrames(data), scan.start, []
            while True:
                verdict = check_frame(frames, position, len(data), self.audit.rules)
                if verdict.kind != VALID or verdict.message is None:
                    break
                found.append(verdict.message)
                position += verdict.size
            self._walks[scan] = found
        return self._walks[scan]

    # ---- queues ----------------------------------------------------------------------------------------------------

    def run_messages(self, scan: ScanId, number: int, queue: QueueState) -> list[Message]:
        """The records of one run of this queue."""
        run = self.audit.scans[scan].runs[number]
        found = [
            m
            for m in self.walk(scan)
            if m.position >= int(run["first_position"]) and queue.key in _queues_of(m, self.audit.rules)
        ]
        return found[: int(run["records"])]

    def queue_entries(self, queue: QueueState) -> Iterator[Entry]:
        unit = queue.unit
        written: dict[tuple[int, int], bytes] = {}  # by file and place: a foreign name can make files overlap
        times: dict[tuple[int, int], int] = {}
        for piece in queue.pieces:
            messages = [] if piece.run < 0 else self.run_messages(piece.scan, piece.run, queue)  # type: ignore[arg-type]
            for k in range(piece.count):
                entry = struct.pack(">qiq", 0, 0x7FFFFFFF, 0)
                if piece.run >= 0:
                    m = messages[piece.skipped + k]
                    entry = struct.pack(">qiq", m.phy_offset, m.total_size, m.tags_code)
                    times[piece.file_start, piece.start + k * unit] = m.store_time
                    if queue.batch:
                        entry += struct.pack(">qqhii", m.store_time, m.batch_base, m.batch_count, -1, 0)
                written[piece.file_start, piece.start + k * unit] = entry
        topic, queue_id = queue.key
        for file in queue.files:
            disk = bytes(file.size) if file.path is None else (self.audited.root / file.path).read_bytes()
            for at in range(0, file.wrote, unit):
                data = written.get((file.start, file.start + at), disk[at : at + unit])
                place = (file.start + at) // unit
                if queue.batch:
                    p, s, c, t, base, n, _, _ = struct.unpack(">qiqqqhii", data)
                    yield {"t": topic, "q": queue_id, "b": place, "p": p, "s": s, "c": c, "st": t, "i": base, "n": n}
                else:
                    p, s, c = struct.unpack(">qiq", data)
                    entry_of = {"t": topic, "q": queue_id, "i": place, "p": p, "s": s}
                    yield entry_of | self.ext_fields(queue, c, times.get((file.start, file.start + at)))

    def ext_fields(self, queue: QueueState, code: int, dispatched_at: int | None) -> Entry:
        """An entry's tags code, or the ext unit's where ext is on: of one that is there, or that dispatch would append.

        Its address is left out: it depends on the filters' bit maps, of which nothing in the store says how long they will be.
        """
        if not self.audit.rules.value("enableConsumeQueueExt") or dispatched_at is None and code > EXT_ADDRESS_MAX:
            return {"c": code}
        if dispatched_at is not None:
            return {"xc": code, "xt": dispatched_at}
        address, size = code - EXT_ADDRESS_BASE, self.audit.rules.ext_file_bytes
        topic, queue_id = queue.key
        path = self.audited.root / "consumequeue_ext" / topic / str(queue_id) / f"{address - address % size:020d}"
        if not path.is_file() or path.stat().st_size < address % size + 20:
            return {"c": code}
        _, unit_code, store_time, _ = struct.unpack_from(">hqqh", path.read_bytes(), address % size)
        return {"xc": unit_code, "xt": store_time}

    # ---- index -----------------------------------------------------------------------------------------------------

    @cached_property
    def _run_starts(self) -> dict[ScanId, list[int]]:
        """For each index run of a scan the number of its first record in the broker's walk."""
        found: dict[ScanId, list[int]] = defaultdict(list)
        for scan, summary in self.audit.scans.items():
            done = 0
            for run in summary.index_runs:
                found[scan].append(done)
                done += int(run["records"]) if run["walk"] & WALK_BROKER else 0
        return found

    def run_keys(self, scan: ScanId, number: int) -> list[tuple[str, Message]]:
        run = self.audit.scans[scan].index_runs[number]
        first = self._run_starts[scan][number]
        found = []
        for m in self.walk(scan)[first : first + int(run["records"])]:
            if m.sys_flag & 0xC == 0xC:
                continue
            keys = [m.properties["UNIQ_KEY"]] if "UNIQ_KEY" in m.properties else []
            keys += [key for key in m.properties.get("KEYS", "").split(" ") if key]
            if self.audit.rules.tag_index and m.properties.get("TAGS"):
                keys.append("T#" + m.properties["TAGS"])
            found += [(f"{m.topic}#{key}", m) for key in keys]
        assert len(found) == int(run["keys"])
        return found

    def index_entries(self, number: int, file: Any) -> Iterator[Entry]:
        rules = self.audit.rules
        size, slots = rules.index_file_bytes, rules.index_slots
        data = bytearray(size)
        if file.path is not None:
            disk = (self.audited.root / file.path).read_bytes()[:size]
            data[: len(disk)] = disk
        begin = file.start_begin_time if file.path is None else struct.unpack_from(">q", data)[0]
        count = max(struct.unpack_from(">i", data, 36)[0], 1)
        for piece in file.pieces:
            for key, m in self.run_keys(piece.scan, piece.run)[piece.first - 1 : piece.last]:
                h = abs(string_hash(key))
                h = 0 if h > 0x7FFFFFFF else h
                at = 40 + 4 * (h % slots)
                (previous,) = struct.unpack_from(">i", data, at)
                previous = 0 if previous <= 0 or previous > count else previous
                seconds = divide(m.store_time - begin, 1000) if begin > 0 else 0
                entry = h, m.phy_offset, min(max(seconds, 0), 0x7FFFFFFF), previous
                struct.pack_into(">iqii", data, 40 + 4 * slots + 20 * count, *entry)
                struct.pack_into(">i", data, at, count)
                begin = m.store_time if count <= 1 else begin
                count += 1
        for i in range(1, file.stored_count):
            at = 40 + 4 * slots + 20 * i
            if at + 20 > size:
                break
            h, p, d, previous = struct.unpack_from(">iqii", data, at)
            yield {"x": number, "i": i, "h": h, "p": p, "d": d, "prev": previous}


def _queues_of(message: Message, rules: BrokerRules) -> set[QueueKey]:
    return {key for _, key, _ in queues_of(message, rules)}

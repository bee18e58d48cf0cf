"""Plans a DLedger log as edits of a copy: the entries that stay, the log's end, the filling of gaps.

Policy broker: the log ends where the release itself would end it. Policy salvage: entries after that stay too where the chain of
indexes can be made whole up to them. Positions and indexes never change. An older part in commitlog/ stays as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from schemas.finding_codes import CATALOGUE, Code
from schemas.finding_codes import Part as Subject
from schemas.layouts import dledger_layout as layout
from schemas.layouts.store_names import BRIDGE_TOPIC, COMMITLOG
from schemas.repair import Bridge, DroppedMessage, RepairStep
from schemas.rows import Finding, SegmentSummary, StoreFile
from store_io.base.errors import StoreError
from store_io.broker.message_verdict import VALID, Message
from store_io.kinds.dledger.group_files import Ends, group_edits
from store_io.kinds.dledger.ledger_chain import live_ends
from store_io.kinds.dledger.ledger_kind import LEDGER
from store_io.kinds.dledger.ledger_parts import (
    BRIDGE,
    FILLER,
    HEADER,
    DataFile,
    GapBytes,
    Part,
    Piece,
    best_chain,
    fill_gap,
    follows,
    parts_of,
    without_end,
)
from store_io.log.records import bridges
from store_io.log.records.framing import PLAIN
from store_io.log.records.message_columns import RecordCheck
from store_io.repair.log.edits import Edit, LogPlan, message_extents, window_of
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_plan import BROKER
from store_io.repair.repair_steps import BRIDGE as BRIDGE_STEP
from store_io.repair.repair_steps import CREATE, CUT, FILL, REMOVE, WRITE_HEADER
from store_io.repair.repair_work import Work
from store_io.repair.writing.store_writer import StoreWriter

MAX_NEW_FILES = 10_000
OLDER_PART = "the part of the log from before DLedger is damaged, and no repair writes that beside a DLedger log"


def plan_ledger(work: Work, audit: Audited, policy: str) -> LogPlan:
    """Plan the log of the new store under that policy. Raises StoreError if it cannot be made whole."""
    if blamed := damage_of_older_part(audit.serious):
        raise StoreError(f"{blamed.file}: {OLDER_PART}")
    limit = None
    if policy == BROKER:
        assert audit.prediction is not None
        limit = audit.prediction.ledger_end
    return _LedgerRepair(work, audit, limit).run()


def damage_of_older_part(serious: Iterable[Finding]) -> Finding | None:
    """Return the finding that forbids the repair of a mixed store. serious: those above a note."""
    return next((f for f in serious if f.file.startswith(COMMITLOG) and Subject.LOG in CATALOGUE[f.code].about), None)


class _LedgerRepair:
    """The repair of a DLedger log.

    limit: physical offset at which the log ends at the latest; None: all that fits stays.
    """

    def __init__(self, work: Work, audit: Audited, limit: int | None):
        ledger = audit.evidence.copy.loaded.ledger
        assert ledger is not None
        self.work, self.audit, self.rules, self.source = work, audit, work.rules, work.source
        self.limit, self.size, self.folder = limit, work.rules.segment_bytes, ledger.folder
        self.data_folder = f"{ledger.folder}/{layout.DATA}"
        self.least = layout.HEADER_BYTES + bridges.least_bytes(work.rules) + len(BRIDGE_TOPIC)
        self.plan = LogPlan()
        self.files: dict[int, DataFile] = {}
        self.summaries: dict[int, SegmentSummary] = {}

    def run(self) -> LogPlan:
        self._read()
        parts = [part for base in sorted(self.files) for part in self.files[base].parts]
        chain = best_chain(parts, lambda a, b: follows(a, b) and self._join(a, b) is not None)
        if not chain:
            raise StoreError(f"{self.data_folder}: no entry passes every check, so there is nothing to repair from")
        self._remove_others(chain)
        lead = self._lead(chain[0])
        first = replace(chain[0], first_index=chain[0].first_index - len(lead))
        self._write(lead, first.first_index, first.first_term)
        for before, after in pairwise(chain):
            pieces = self._join(before, after)
            assert pieces is not None
            self._write(pieces, before.last_index + 1, before.last_term)
        last = chain[-1]
        self._end(last)
        self._note_dropped(parts, chain)
        self.plan.edits += group_edits(self.work, self.audit, Ends(first.first_index, last.last_index, last.last_term))
        self.plan.start = min([s.base_offset for s in self.audit.segments if s.path.startswith("commitlog")] + [first.base])
        self.plan.end = last.base + last.end
        self.plan.messages += self._older_messages() + sum(part.entries for part in chain) - self._old_bridges()
        return self.plan

    # ---- what is there -------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        walks = self.audit.evidence[LEDGER].data
        for summary in self.audit.segments:
            walk = walks.get(summary.path)
            if walk is None or summary.size != self.size:  # it holds no message then: `unblock` gives the others their length
                continue
            if summary.base_offset in self.files:
                raise StoreError(
                    f"{summary.path}: {self.files[summary.base_offset].path} has the same number; which is right is not known"
                )
            self.files[summary.base_offset] = DataFile(summary.path, summary.base_offset, summary.size)
            self.summaries[summary.base_offset] = summary
        ends = without_end(self.files.values(), self.limit, live_ends(walks.values()))
        for base, file in self.files.items():
            file.parts = parts_of(self.source, self.summaries[base], walks[file.path], ends[file.path])

    def _path(self, base: int) -> str:
        return f"{self.data_folder}/{base:020d}"

    def _older_messages(self) -> int:
        return sum(
            extent.message_count for s in self.audit.segments
            if s.base_offset not in self.files or not s.path.startswith(f"{self.folder}/") for extent in s.extents
        )  # fmt: skip

    def _old_bridges(self) -> int:
        end = self.plan.end
        found = (f for s in self.summaries.values() for f in s.findings if f.code == Code.COMMITLOG_BRIDGED)
        return sum(f.count for f in found if f.phy_offset is None or f.phy_offset < end)

    # ---- gaps ------------------------------------------------------------------------------------------------------------

    def _join(self, before: Part, after: Part) -> list[Piece] | None:
        """Return the pieces between the two parts in the new log."""
        entries = after.first_index - before.last_index - 1
        if before.base == after.base:
            rooms = [GapBytes(before.base, before.end, after.start, True)]
        else:
            missing = (after.base - before.base) // self.size - 1
            if (after.base - before.base) % self.size or missing > MAX_NEW_FILES:
                return None
            rooms = [] if self._filled(before) and not entries else [GapBytes(before.base, before.end, self.size, False)]
            rooms += [GapBytes(before.base + k * self.size, 0, self.size, False) for k in range(1, missing + 1)]
            rooms.append(GapBytes(after.base, 0, after.start, True))
        rooms = [room for room in rooms if room.size]
        if not rooms:
            return [] if not entries else None
        if entries and before.base != after.base and self._filled(before) and rooms[0].base == before.base:
            found = fill_gap(rooms[1:], entries, self.least, self._message_bytes)
            if found is not None:
                return found
        return fill_gap(rooms, entries, self.least, self._message_bytes)

    def _filled(self, part: Part) -> bool:
        """Say whether a sound filler follows the part."""
        with self.source.open(self._path(part.base)) as file:
            head = file.read(part.end, layout.MIN_BLANK_BYTES) if part.end + layout.MIN_BLANK_BYTES <= self.size else b""
        return part.end == self.size or head == _filler(self.size - part.end)

    def _message_bytes(self, base: int, position: int) -> int:
        message = self._message(base, position)
        return message.total_size if message is not None else 0

    def _message(self, base: int, position: int) -> Message | None:
        """Return the message there that passes every check but that of the header before it."""
        summary = self.summaries.get(base)
        if summary is None or position >= self.size:
            return None
        check = replace(RecordCheck.audit_of(base, self.rules, summary.path), framing=PLAIN)
        with window_of(self.source, summary.path) as window:
            verdict = check.verdict(window, position, summary.size)
        return verdict.message if verdict.kind == VALID else None

    def _lead(self, first: Part) -> list[Piece]:
        """Return the pieces before the first part in its file."""
        if not first.start:
            return []
        rooms = [GapBytes(first.base, 0, first.start, True)]
        most = max(1, first.start // self.least)  # one message with its header anew may be shorter than a bridge
        for entries in range(1, min(first.first_index, most) + 1):
            pieces = fill_gap(rooms, entries, self.least, self._message_bytes)
            if pieces is not None and (pieces[-1].kind == HEADER or entries == 1):
                return pieces
        raise StoreError(f"{self._path(first.base)}: no entry can be put before the first sound one, at {first.start}")

    # ---- what is written -------------------------------------------------------------------------------------------------

    def _edit(self, step: RepairStep, act: Callable[[StoreWriter], None]) -> None:
        self.plan.edits.append(Edit(step, act))

    def _write(self, pieces: Sequence[Piece], index: int, term: int) -> None:
        for piece in pieces:
            if piece.base not in self.files:
                self._create(piece.base)
            if piece.kind == FILLER:
                self._filler(piece)
                continue
            header = _header(piece, index, term)
            if piece.kind == BRIDGE:
                self._bridge(piece, header)
            else:
                self._header(piece, header)
            index += 1

    def _create(self, base: int) -> None:
        path, size = self._path(base), self.size
        self.files[base] = DataFile(path, base, size)
        self._edit(RepairStep(CREATE, path, 0, size, "the data file is missing"), lambda writer: writer.create(path, size))

    def _filler(self, piece: Piece) -> None:
        path, data = self._path(piece.base), _filler(piece.end - piece.start)

        def write(writer: StoreWriter) -> None:
            writer.zero(path, piece.start, piece.end)
            writer.write(path, piece.start, data)

        self._edit(RepairStep(FILL, path, piece.start, piece.end, "a data file follows"), write)

    def _bridge(self, piece: Piece, header: bytes) -> None:
        path, at, base = self._path(piece.base), piece.start + layout.HEADER_BYTES, piece.base
        record = bridges.record(base + at, piece.end - at, self._time_near(base, piece.start), self.rules)

        def write(writer: StoreWriter) -> None:
            writer.zero(path, piece.start, piece.end)
            writer.write(path, piece.start, header + record)

        self._edit(RepairStep(BRIDGE_STEP, path, piece.start, piece.end, "an entry in the place of one that is lost"), write)
        self.plan.bridges.append(Bridge(path, piece.start, piece.end, base + piece.start, "record"))
        self.plan.added[BRIDGE_TOPIC, 0] += 1

    def _header(self, piece: Piece, header: bytes) -> None:
        path, end = self._path(piece.base), piece.start + layout.HEADER_BYTES
        step = RepairStep(WRITE_HEADER, path, piece.start, end, "the message after it passes every check", kept={"messages": 1})
        self._edit(step, lambda writer: writer.write(path, piece.start, header))
        self.plan.messages += 1
        message = self._message(piece.base, end)
        if message is not None and not any(e.start <= piece.start < e.end for e in message_extents(self.summaries[piece.base])):
            self.plan.added[message.topic, message.queue_id] += 1

    def _end(self, last: Part) -> None:
        """Put zeros after the last entry, and remove later files."""
        path, end, size = self._path(last.base), last.end, self.size
        with window_of(self.source, path) as window:
            used = window.last_nonzero_end(end)
        if used > end and not (self._filled(last) and used <= end + layout.MIN_BLANK_BYTES):
            lost = {"messages": self._messages_after(last), "bytes": used - end}
            step = RepairStep(CUT, path, end, size, "the log ends here", lost=lost)
            self._edit(step, lambda writer: writer.zero(path, end, size))
            self.plan.zeroed_bytes += used - end

    def _messages_after(self, last: Part) -> int:
        file = self.files[last.base]
        return sum(part.entries for part in file.parts if part.start >= last.end)

    def _remove_others(self, chain: Sequence[Part]) -> None:
        first, last = chain[0].base, chain[-1].base
        kept = {file.path for base, file in self.files.items() if first <= base <= last and file.path == self._path(base)}
        for entry in self.audit.tree.children(self.data_folder):
            if entry.path not in kept:
                self._remove(entry)

    def _remove(self, entry: StoreFile) -> None:
        messages = sum(e.message_count for s in self.audit.segments if s.path == entry.path for e in s.extents)
        lost = {"messages": messages, "bytes": entry.size if entry.kind == "file" else 0}
        step = RepairStep(REMOVE, entry.path, reason="no data file of the new log", lost=lost)
        self._edit(step, lambda writer: writer.remove(entry.path))

    def _note_dropped(self, parts: Sequence[Part], chain: Sequence[Part]) -> None:
        """Count messages of parts inside of the chain that do not fit into it, and whose place a bridge takes."""
        kept = set(chain)
        bridged = [(row.phy_offset, row.phy_offset + row.end - row.start) for row in self.plan.bridges]
        for part in parts:
            if part in kept or part.base + part.start >= chain[-1].base + chain[-1].end:
                continue
            at = part.start
            while at < part.end:
                message = self._message(part.base, at + layout.HEADER_BYTES)
                if message is None:
                    break
                end = at + layout.HEADER_BYTES + message.total_size
                if any(low < part.base + end and part.base + at < high for low, high in bridged):
                    self.plan.dropped.append(
                        DroppedMessage(
                            self._path(part.base), at, end, message.topic, message.queue_id, message.queue_offset, True,
                            part.base + at + layout.HEADER_BYTES, "its entry cannot be given the index that it needs",
                        )
                    )  # fmt: skip
                at = end

    def _time_near(self, base: int, position: int) -> int:
        """Store time of a message near that position."""
        near = [p for file in self.files.values() for p in file.parts]
        place = min(near, key=lambda p: abs(p.base + p.start - base - position))
        message = self._message(place.base, place.start + layout.HEADER_BYTES)
        return message.store_time if message is not None else self.audit.last_store_time


def _filler(size: int) -> bytes:
    """Return the head of a filler of that many bytes."""
    return layout.MAGIC_BLANK_BYTES + struct.pack(">i", size)


def _header(piece: Piece, index: int, term: int) -> bytes:
    size = piece.end - piece.start
    fields = {
        "magic": layout.MAGIC, "size": size, "index": index, "term": term, "pos": piece.base + piece.start,
        "channel": 0, "chain_crc": 0, "body_crc": 0, "body_size": size - layout.HEADER_BYTES,
    }  # fmt: skip
    return struct.pack(">iiqqqiiii", *(fields[name] for name in layout.HEADER_DTYPE.names or ()))

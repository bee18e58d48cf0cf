"""The checkpoint file: its fields as stored, and what they say beside the CommitLog.

Source: StoreCheckpoint, read at 4.8.0, 5.0.0, 5.1.1 and 5.5.0 (formats.md 7; recovery.md 5.1, 5.3b, 10; pitfalls D1 to D9).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from schemas.finding_codes import Code
from schemas.layouts import checkpoint_layout as layout
from schemas.rows import Checkpoint, Finding
from schemas.severity_cases import Case, severity_in
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing

# getMinTimestamp takes this much off, so a checkpoint that is ahead by no more makes no recovery begin too late.
MARGIN_MS = 3000
MASTER_AHEAD_BYTES = 1 << 44  # a slave's log may end so much before its master's
_FIELDS_BYTES = struct.calcsize(layout.FIELDS_FORMAT)
_TIMES = (
    ("physicMsgTimestamp", layout.PHYSIC_MSG_TIMESTAMP_POSITION),
    ("logicsMsgTimestamp", layout.LOGICS_MSG_TIMESTAMP_POSITION),
    ("indexMsgTimestamp", layout.INDEX_MSG_TIMESTAMP_POSITION),
)
_OFFSETS = (  # and by how much they may be ahead of the log
    ("confirmPhyOffset", layout.CONFIRM_PHY_OFFSET_POSITION, 0),
    ("logicsPhysicalOffset", layout.LOGICS_PHYSICAL_OFFSET_POSITION, 0),
    (
        "masterFlushedOffset",
        layout.MASTER_FLUSHED_OFFSET_POSITION,
        MASTER_AHEAD_BYTES,
    ),  # 0 or -1: never a slave
)


@dataclass(frozen=True)
class StoredCheckpoint:
    """The checkpoint file of a store.

    fields: as a broker reads them; zeros if the file is missing or short.
    after_fields: the position of the first byte after the known fields that is not zero, and the position after the last such
    byte; None if all are zero.
    """

    present: bool = False
    size: int = 0
    fields: Checkpoint = field(default_factory=Checkpoint)
    after_fields: tuple[int, int] | None = None


def read_checkpoint(source: ByteSource, listing: StoreListing) -> StoredCheckpoint:
    """Read the store's checkpoint; `present` is False if there is none. Raises as `ByteSource.open`."""
    if listing.get(layout.CHECKPOINT_FILE) is None:
        return StoredCheckpoint()
    with source.open(layout.CHECKPOINT_FILE) as file:
        data = file.read(0, layout.FILE_BYTES)
        size = file.size
    rest = data[_FIELDS_BYTES:]
    first = len(rest) - len(rest.lstrip(b"\0"))
    after = None if first == len(rest) else (_FIELDS_BYTES + first, _FIELDS_BYTES + len(rest.rstrip(b"\0")))
    values = struct.unpack_from(layout.FIELDS_FORMAT, data.ljust(_FIELDS_BYTES, b"\0"))
    return StoredCheckpoint(True, size, Checkpoint(*values), after)


def checkpoint_findings(
    checkpoint: StoredCheckpoint,
    *,
    first_store_time: int,
    last_store_time: int,
    log_end: int,
    unclean: bool,
    keyed_queues: bool = False,
) -> list[Finding]:
    """Compare the checkpoint with the log and return the findings. Pure.

    first_store_time, last_store_time: the smallest and the largest store time (ms) of the copy's messages, 0 without one.
    log_end: the physical offset after the last message.
    keyed_queues: queues are in RocksDB; then logicsMsgTimestamp stays 0 (rocksdb.md 2).
    A healthy store's checkpoint gives nothing above a note: a store that was killed young has zeros, a copy of a running broker
    has a checkpoint of another moment.
    """
    if not checkpoint.present:
        severity = severity_in(Code.CHECKPOINT_MISSING, Case.NEW_STORE, not last_store_time)
        return [_finding(Code.CHECKPOINT_MISSING, None, severity, f"a file of {layout.FILE_BYTES:,} bytes", "no file")]
    found = []
    if checkpoint.size < layout.FILE_BYTES:
        found.append(_finding(Code.CHECKPOINT_SHORT, None, "", f"{layout.FILE_BYTES} bytes", f"{checkpoint.size} bytes"))
    elif checkpoint.size > layout.FILE_BYTES:
        # What is longer is mapped in part and loses nothing.
        found.append(_finding(Code.CHECKPOINT_BYTES_BEHIND, None, "", f"{layout.FILE_BYTES} bytes", f"{checkpoint.size} bytes"))
    values = checkpoint.fields
    times = dict(zip(_TIMES, (values.physic_time, values.logics_time, values.index_time), strict=True))
    for (name, at), time in times.items():
        if time < 0:
            found.append(_finding(Code.CHECKPOINT_DAMAGED, at, "", f"{name} of at least 0", str(time)))
        elif time > last_store_time:
            between = bool(last_store_time) and time - last_store_time <= MARGIN_MS
            severity = severity_in(Code.CHECKPOINT_AHEAD, Case.BETWEEN_FLUSHES, between)
            latest = str(last_store_time) if last_store_time else "0, as there is no message"
            found.append(_finding(Code.CHECKPOINT_AHEAD, at, severity, f"{name} of at most {latest}", str(time)))
        elif 0 < time < first_store_time and name != "indexMsgTimestamp":
            found.append(_finding(Code.CHECKPOINT_BEHIND, at, "", f"{name} of at least {first_store_time}", str(time)))
    if last_store_time and values.logics_time == 0 and not keyed_queues:
        # A broker that stops cleanly has written the time of the last message that it dispatched.
        severity = severity_in(Code.CHECKPOINT_ZERO, Case.AFTER_CLEAN_STOP, not unclean)
        at = layout.LOGICS_MSG_TIMESTAMP_POSITION
        found.append(_finding(Code.CHECKPOINT_ZERO, at, severity, "logicsMsgTimestamp of a message", "0"))
    offsets = values.confirm_phy_offset, values.logics_phy_offset, values.master_flushed_offset
    for (name, at, ahead), offset in zip(_OFFSETS, offsets, strict=True):
        if offset < -1:
            found.append(_finding(Code.CHECKPOINT_DAMAGED, at, "", f"{name} of at least -1", str(offset)))
        elif offset > log_end + ahead:
            expected = f"{name} of at most {log_end + ahead}"
            found.append(_finding(Code.CHECKPOINT_OFFSET_BEYOND_END, at, "", expected, str(offset)))
    if checkpoint.after_fields is not None:
        start, end = checkpoint.after_fields
        message = "Bytes after the known fields, from a newer release or stray."
        found.append(Finding(Code.CHECKPOINT_BYTES_BEHIND, layout.CHECKPOINT_FILE, start, end, expected="zeros", message=message))
    return found


def _finding(code: Code, at: int | None, severity: str, expected: str, actual: str) -> Finding:
    """Return a finding on the checkpoint.

    at: position of the field concerned, of 8 bytes; None: the whole file.
    """
    end = None if at is None else at + 8
    message = f"checkpoint: {actual}; expected {expected}."
    return Finding(code, layout.CHECKPOINT_FILE, at, end, severity, expected=expected, actual=actual, message=message)

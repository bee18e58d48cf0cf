"""The messages that a broker would serve, as rows of the columns of exploration (`schemas.sources.MESSAGES`), and a note.

topic, queue_id and queue_offset are those under which a consumer gets it; where the message itself says otherwise, `note` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from schemas import commitlog_layout as layout
from schemas.rows import Row
from store_io.base.java_compat import parse_number
from store_io.base.times import LAST_TIME_MS
from store_io.base.wording import seen
from store_io.broker.index_keys import has_key
from store_io.broker.message_verdict import Message, tags_code_of
from store_io.broker.queues.multi_dispatch import multi_dispatch
from store_io.log.records.message_bodies import STATUS_NAMES, TOO_LARGE, decode_body
from store_io.log.records.message_decode import host_text
from store_io.messages.explain_record import offset_msg_id
from store_io.messages.message_batch import COMPRESSIONS, TRANSACTIONS, compression_code, transaction_code
from store_io.messages.scans import MAX_BODY_BYTES, NOTE
from store_io.messages.served.broker_view import REMOVED, SERVED, SKIPPED, UNDECODABLE, BrokerView, Served

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_NOTES = {
    UNDECODABLE: "no message that a client can read is there",
    REMOVED: "the log does not hold these bytes: consumers skip the entry",
    SKIPPED: "skipped after an entry whose bytes the log does not hold",
}


def body_of(view: BrokerView, one: Served) -> bytes:
    """Return the stored body of a served message; empty without one."""
    m = one.message
    if m is None or one.file is None or m.body_length <= 0:
        return b""
    return view.bytes_at(one.file, one.position + m.body_position, m.body_length)


def served_row(view: BrokerView, one: Served, columns: Sequence[str], key: str | None = None) -> Row:
    """Return the columns' values and `note`, of all columns but `lost`. Values of a message are None if no message is decoded.

    key: by which it was looked up: the note says so if the message has only another key with the same hash.
    """
    row: Row = {name: _COLUMNS[name](view, one) for name in columns if name not in ("body", "body_status")}
    if "body" in columns or "body_status" in columns:
        body, status = b"", STATUS_NAMES[0]
        if one.message is not None:
            large = one.message.body_length > MAX_BODY_BYTES
            found, code = (None, TOO_LARGE) if large else decode_body(body_of(view, one), one.message.sys_flag, MAX_BODY_BYTES)
            body, status = found, STATUS_NAMES[code]  # type: ignore[assignment]
        row |= {name: value for name, value in (("body", body), ("body_status", status)) if name in columns}
    row[NOTE] = _note(view, one, key)
    return row


def _note(view: BrokerView, one: Served, key: str | None) -> str | None:
    m = one.message
    if one.status != SERVED or m is None:
        return _NOTES[one.status]
    if key is not None:
        if not has_key(m.properties, key):
            return "another key with the same hash"
        return None
    asked, own = (one.topic, one.queue_id, one.queue_offset), (m.topic, m.queue_id, m.queue_offset)
    if asked == own:
        return None
    properties = view.bytes_at(one.file or "", one.position + m.properties_position, max(0, m.properties_length))
    multi = multi_dispatch(view.rules, (m.topic, m.queue_id), properties).entries
    if ((one.topic, one.queue_id), one.queue_offset) in multi:
        return f"of {seen(m.topic)}, queue {m.queue_id}, by multi-dispatch"
    return f"the message says {seen(m.topic)}, queue {m.queue_id}, offset {m.queue_offset}"


def _of(get: Callable[[Message], Any]) -> Callable[[BrokerView, Served], Any]:
    return lambda view, one: None if one.message is None else get(one.message)


def _property(name: str) -> Callable[[BrokerView, Served], Any]:
    return _of(lambda m: m.properties.get(name))


def _number(name: str) -> Callable[[BrokerView, Served], Any]:
    return _of(lambda m: parse_number(m.properties.get(name), 32))


def _time(milliseconds: int) -> datetime | None:
    return _EPOCH + timedelta(milliseconds=milliseconds) if 0 <= milliseconds <= LAST_TIME_MS else None


def _offset_id(m: Message) -> str:
    return offset_msg_id(m.store_host, m.phy_offset)


_COLUMNS: Mapping[str, Callable[[BrokerView, Served], Any]] = {
    "file": lambda view, one: one.file,
    "position": lambda view, one: one.position if one.file is not None else None,
    "phy_offset": lambda view, one: one.phy_offset,
    "total_size": lambda view, one: one.size if one.message is None else one.message.total_size,
    "topic": lambda view, one: one.topic,
    "queue_id": lambda view, one: one.queue_id,
    "queue_offset": lambda view, one: one.queue_offset,
    "store_time": _of(lambda m: _time(m.store_time)),
    "store_time_ms": _of(lambda m: m.store_time),
    "born_time": _of(lambda m: _time(m.born_time)),
    "born_time_ms": _of(lambda m: m.born_time),
    "msg_id": _of(lambda m: m.properties.get("UNIQ_KEY") or _offset_id(m)),
    "offset_msg_id": _of(_offset_id),
    "tags": _property("TAGS"),
    "keys": _property("KEYS"),
    "unique_key": _property("UNIQ_KEY"),
    "properties": _of(lambda m: dict(m.properties)),
    "properties_size": _of(lambda m: max(0, m.properties_length)),
    "tags_code": lambda view, one: (
        None
        if one.message is None
        else tags_code_of(one.message.topic, one.message.properties, one.message.store_time, view.rules.delays)
    ),
    "sys_flag": _of(lambda m: m.sys_flag),
    "transaction": _of(lambda m: TRANSACTIONS[transaction_code(m.sys_flag)]),
    "compression": _of(lambda m: COMPRESSIONS[compression_code(m.sys_flag)]),
    "inner_batch": _of(lambda m: m.sys_flag & layout.SYS_INNER_BATCH != 0),
    "flag": _of(lambda m: m.flag),
    "born_host": _of(lambda m: host_text(m.born_host)),
    "store_host": _of(lambda m: host_text(m.store_host)),
    "reconsume_times": _of(lambda m: m.reconsume_times),
    "prepared_offset": _of(lambda m: m.prepared_offset),
    "delay_level": _number("DELAY"),
    "real_topic": _property("REAL_TOPIC"),
    "real_queue_id": _number("REAL_QID"),
    "batch_base": _of(lambda m: parse_number(m.properties.get("INNER_BASE"), 64) or m.queue_offset),
    "batch_count": _of(lambda m: parse_number(m.properties.get("INNER_NUM"), 16) or 1),
    "inner_index": lambda view, one: None,
    "status": lambda view, one: one.status,
    "body_size": _of(lambda m: max(0, m.body_length)),
    "body_crc": _of(lambda m: m.body_crc),
}

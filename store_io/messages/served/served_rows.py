"""The messages that a broker would serve for a question, as rows of its columns (`schemas.sources.MESSAGES`), and a note.

topic, queue_id and queue_offset are those under which a consumer gets it; where the message itself says otherwise, `note` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.layouts import commitlog_layout as layout
from schemas.rows import Row
from store_io.audit.audit_store import run_audit
from store_io.base.errors import StoreError
from store_io.base.java.java_compat import MAX_LONG, parse_number
from store_io.base.tasks import Workers
from store_io.base.times import LAST_TIME_MS
from store_io.base.wording import seen
from store_io.broker.index_keys import has_key
from store_io.broker.message_verdict import Message, tags_code_of
from store_io.broker.queues.multi_dispatch import multi_dispatch
from store_io.log.records.message_bodies import STATUS_NAMES, TOO_LARGE, decode_body
from store_io.log.records.message_decode import host_text
from store_io.messages.explain.explain_record import offset_msg_id
from store_io.messages.message_batch import COMPRESSIONS, TRANSACTIONS, compression_code, transaction_code
from store_io.messages.message_filter import ALL, TIMES, within
from store_io.messages.message_search import in_body
from store_io.messages.question import ByKeys, Question, Tell
from store_io.messages.scans import MAX_BODY_BYTES, NOTE
from store_io.messages.served.broker_view import MAX_KEYED, REMOVED, SERVED, SKIPPED, UNDECODABLE, BrokerView, Served
from store_io.model.audit_request import AuditRequest
from store_io.wording.gaps import gap_text
from store_io.wording.refusals import refusal_sentence

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_NOTES = {
    UNDECODABLE: "no message that a client can read is there",
    REMOVED: "the log does not hold these bytes: consumers skip the entry",
    SKIPPED: "skipped after an entry whose bytes the log does not hold",
}


def served_rows(request: AuditRequest, asked: Question, tell: Tell, workers: Workers) -> Iterator[Row]:
    """Yield the messages that the release would serve after a start on the copy, as rows.

    They come by queue and queue offset, or as a lookup answers. Raises StoreError if that is not known.
    """
    audit = run_audit(request, workers)
    prediction = audit.prediction
    if audit.failed or prediction is None:
        why = next(map(gap_text, audit.gaps.faults), "the audit is incomplete")
        raise StoreError(f"what a broker would do is not known: {why}")
    if prediction.refusal is not None:
        start = f"RocketMQ {request.release} would not start on this copy, so it would serve nothing"
        raise StoreError(f"{start}: {refusal_sentence(prediction.refusal)}")
    key = asked.contents.key or next(iter(asked.contents.unique_keys or ()), None)
    with BrokerView(audit) as view:
        for one in _served(view, asked, key, tell):
            if _meets(view, one, asked):
                yield served_row(view, one, asked.columns, key)


def _served(view: BrokerView, asked: Question, key: str | None, tell: Tell) -> Iterator[Served]:
    wanted = asked.wanted
    if asked.at is not None:
        yield from filter(None, [view.at(asked.at)])
        return
    if key is not None and wanted.topics is not None:
        low, high = wanted.store_times
        most = MAX_KEYED if asked.limit is None else min(asked.limit, MAX_KEYED)
        found = view.by_key(next(iter(wanted.topics)), key, most, low or 0, MAX_LONG if high is None else high - 1)
        yield from found
        if len(found) == most:
            tell(ByKeys(most))
        return
    low, high = wanted.queue_offsets
    queues = [queue for queue in view.queues() if wanted.holds_queue(*queue)]
    yield from view.read([(queue, low or 0, (1 << 62) if high is None else high) for queue in queues])


def _meets(view: BrokerView, one: Served, asked: Question) -> bool:
    """Say whether a message meets the conditions that a broker's own lookups do not know."""
    wanted, contents, m = asked.wanted, asked.contents, one.message
    if asked.at is None and not within(one.phy_offset, wanted.phy_offsets):
        return False
    looked_up = asked.at is not None or contents.key is not None or contents.unique_keys is not None
    in_queue = wanted.holds_queue(one.topic, one.queue_id) and within(one.queue_offset, wanted.queue_offsets)
    if looked_up and not in_queue:
        return False
    ranges = {field: getattr(wanted, name) for name, field in TIMES.items() if getattr(wanted, name) != ALL}
    if m is None:
        return not ranges and wanted.tags is None and contents.body is None
    if wanted.tags is not None and m.properties.get("TAGS") not in wanted.tags:
        return False
    if not all(within(getattr(m, field), bounds) for field, bounds in ranges.items()):
        return False
    # A lookup by key compares hashes alone, and so do we.
    return contents.body is None or in_body(contents.body, body_of(view, one), m.sys_flag, MAX_BODY_BYTES)


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

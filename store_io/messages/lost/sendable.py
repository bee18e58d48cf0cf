"""A message of a copy in the form in which a producer can send it again: one JSON object a line.

What a broker or a consumer's client adds to a message is left out: it describes the old one's place and way, or would make the
new one something else. `NOT_SENT` lists these properties with the reason. What a delayed message waits for becomes its topic.

Source: MessageConst, Validators.checkMessage, SendMessageProcessor, HookUtils, ScheduleMessageService.messageTimeup,
TimerMessageStore.convert, TransactionalMessageBridge (4.8.0 to 5.5.0).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from schemas.layouts.timer_layout import TIMER_TOPIC
from store_io.base.java.java_compat import parse_number
from store_io.base.times import iso_time
from store_io.broker.index_keys import KEYS, TAGS, UNIQUE_KEY, key_hash, key_text
from store_io.broker.settings.built_in_topics import is_brokers_own
from store_io.log.records.message_bodies import DECODED, STATUS_NAMES, STORED
from store_io.messages.lost.segment_loss import NONE_SPARED, WAITING_TOPICS, Spared
from store_io.messages.question import Question
from store_io.messages.redaction import NONE, Redaction
from store_io.messages.scans import MessageScan

_Asked = TypeVar("_Asked", MessageScan, Question)

BATCH_ROWS = 256  # made lines together: as text a body takes several times its size
TEXT_BYTES = 4096  # bodies up to so many bytes are shown as text, too

_PLACE = "where a delayed, timer or transaction message waited to go"
_TIMER = "set by a broker's timers"
_TRANSACTION = "of the transaction; with it the message would be a half message again, or look like one"
_BATCH = "a broker counts the messages of a batch and their places"
_CONSUMED = "of one consumer's earlier reading"

NOT_SENT: Mapping[str, str] = {
    "REAL_TOPIC": _PLACE,
    "REAL_QID": _PLACE,
    "DELAY": "the delay level, here delay_level; a message that was delivered would wait again",
    "TIMER_DELIVER_MS": "the time at which it is due, here deliver_time_ms",
    "TIMER_DELAY_SEC": "counted from the first sending; here deliver_time_ms",
    "TIMER_DELAY_MS": "counted from the first sending; here deliver_time_ms",
    "TIMER_OUT_MS": _TIMER,
    "TIMER_ENQUEUE_MS": _TIMER,
    "TIMER_DEQUEUE_MS": _TIMER,
    "TIMER_ROLL_TIMES": _TIMER,
    "TIMER_ROLL_LABEL": _TIMER,
    "TIMER_DELAY_LEVEL": _TIMER,
    "TRAN_MSG": _TRANSACTION,
    "PGROUP": _TRANSACTION,
    "TRAN_PREPARED_QUEUE_OFFSET": _TRANSACTION,
    "TRANSACTION_CHECK_TIMES": _TRANSACTION,
    "CHECK_IMMUNITY_TIME_IN_SECONDS": _TRANSACTION,
    "__transactionId__": _TRANSACTION,
    "INNER_NUM": _BATCH,
    "INNER_BASE": _BATCH,
    "INNER_MULTI_QUEUE_OFFSET": "places in light queues, which the broker assigns",
    "CLUSTER": "the name of the broker's cluster, which the broker sets",
    "MSG_REGION": "the region, which the broker sets",
    "TRACE_ON": "whether the broker wants traces, as it says in its answers",
    "__CRC32#": "the broker's checksum of the properties",
    "MIN_OFFSET": _CONSUMED,
    "MAX_OFFSET": _CONSUMED,
    "CONSUME_START_TIME": _CONSUMED,
    "POP_CK": _CONSUMED,
    "POP_CK_OFFSET": _CONSUMED,
    "1ST_POP_TIME": _CONSUMED,
}
"""Properties that are left out, and why."""

_SHOWN_APART = frozenset((TAGS, KEYS, UNIQUE_KEY))
_HALF = frozenset(("RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"))


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as `sendable` reads it: a row with COLUMNS. Any values are taken.

    properties: a mapping, or pairs. body: uncompressed.
    """

    phy_offset: int
    topic: str
    queue_id: int
    queue_offset: int
    store_time_ms: int
    born_time_ms: int
    properties: Any
    tags_code: int
    transaction: str
    flag: int
    inner_batch: bool
    inner_index: int | None
    status: str
    lost: str | None
    body: bytes | None
    body_status: str


COLUMNS = tuple(field.name for field in fields(StoredMessage))


@dataclass(frozen=True)
class SendableMessage:
    """The line of a message. why_not: set if it should not be sent. stored_...: the message's own place.

    properties: pairs, not a JSON object: some parsers obey members of certain names, and a producer chooses these names.
    """

    topic: str
    queue_id: int
    tags: str | None
    keys: str | None
    unique_key: str | None
    flag: int
    born_time: str | None
    born_time_ms: int
    delay_level: int | None
    deliver_time_ms: int | None
    properties: list[list[str]]
    body_text: str | None
    body_base64: str | None
    why_not: str | None
    lost: str | None
    status: str
    stored_topic: str
    stored_queue_id: int
    queue_offset: int
    phy_offset: int
    inner_index: int | None
    store_time: str | None
    key_hashes: list[int] | None
    not_sent: list[str]


class Waiting(Protocol):
    """The facts that say where a message goes that is sent again."""

    @property
    def topic(self) -> str: ...
    @property
    def queue_id(self) -> int: ...
    @property
    def tags_code(self) -> int: ...
    @property
    def transaction(self) -> str: ...


@dataclass(frozen=True)
class Target:
    """The target of a message that is sent again.

    why_not: set if it should not be sent.
    """

    topic: str
    queue_id: int
    delay_level: int | None = None
    deliver_time_ms: int | None = None
    why_not: str | None = None


def sendable(message: StoredMessage, redaction: Redaction, spared: Spared = NONE_SPARED) -> SendableMessage:
    """Return the line of a message.

    spared: lost messages that are not to be sent again.
    """
    properties = dict(message.properties or {})
    target = target_of(message, properties)
    sent = {name: value for name, value in properties.items() if name not in NOT_SENT and name not in _SHOWN_APART}
    names = [properties.get(UNIQUE_KEY, ""), *properties.get(KEYS, "").split(" ")]
    hidden = redaction.mode != NONE
    body = redaction.data(message.body)
    why_not = target.why_not or spared.why_not(message.topic, message.phy_offset) or _body_fault(message)
    return SendableMessage(
        topic=target.topic,
        queue_id=target.queue_id,
        tags=redaction.text(properties.get(TAGS)),
        keys=redaction.text(properties.get(KEYS)),
        unique_key=redaction.text(properties.get(UNIQUE_KEY)),
        flag=message.flag,
        born_time=_time(message.born_time_ms),
        born_time_ms=message.born_time_ms,
        delay_level=target.delay_level,
        deliver_time_ms=target.deliver_time_ms,
        properties=[list(pair) for pair in redaction.properties(sent).items()],
        body_text=_text(body),
        body_base64=None if body is None else base64.b64encode(body).decode("ascii"),
        why_not="values of this line are hidden" if hidden else why_not,
        lost=message.lost,
        status=message.status,
        stored_topic=message.topic,
        stored_queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        phy_offset=message.phy_offset,
        inner_index=message.inner_index,
        store_time=_time(message.store_time_ms),
        key_hashes=None if hidden else [key_hash(key_text(message.topic, name)) for name in names if name],
        not_sent=sorted(name for name in properties if name in NOT_SENT),
    )


def sendable_messages(batch: pa.RecordBatch, redaction: Redaction, spared: Spared = NONE_SPARED) -> Iterator[SendableMessage]:
    """Yield the line of each row of a batch that has COLUMNS."""
    for low in range(0, batch.num_rows, BATCH_ROWS):
        for row in batch.slice(low, BATCH_ROWS).select(COLUMNS).to_pylist():
            yield sendable(StoredMessage(**row), redaction, spared)


def to_resend(asked: _Asked) -> _Asked:
    """Return the scan or question for the same messages, in COLUMNS: bodies as producers sent them, batches taken apart."""
    return replace(asked, columns=COLUMNS, decompress=True, unpack=True)


def target_of(message: Waiting, properties: Mapping[str, str]) -> Target:
    """Return where a message goes that is sent again."""
    topic, queue_id = message.topic, message.queue_id
    real = properties.get("REAL_TOPIC"), parse_number(properties.get("REAL_QID"), 32)
    if topic in _HALF or message.transaction == "prepared":
        why = "a prepared message of a transaction: its producer alone knows whether it was committed"
        return Target(real[0] or topic, queue_id if real[1] is None else real[1], why_not=why)
    if message.transaction == "rollback":
        return Target(topic, queue_id, why_not="rolled back by its producer")
    if topic in WAITING_TOPICS:
        if not real[0] or real[1] is None:
            return Target(topic, queue_id, why_not="names no topic and queue for which it waits")
        if "TIMER_DEL_UNIQKEY" in properties:
            return Target(real[0], real[1], why_not="cancels a timer message, and is none")
        if topic == TIMER_TOPIC:
            due = parse_number(properties.get("TIMER_DELIVER_MS"), 64) or parse_number(properties.get("TIMER_OUT_MS"), 64)
            return Target(real[0], real[1], deliver_time_ms=due)
        level = parse_number(properties.get("DELAY"), 32)
        return Target(real[0], real[1], level if level and level > 0 else None, message.tags_code)
    if is_brokers_own(topic):
        return Target(topic, queue_id, why_not="a broker's own message")
    return Target(topic, queue_id)


def _body_fault(message: StoredMessage) -> str | None:
    if message.inner_batch and message.inner_index is None:
        return "a batch whose messages cannot be taken apart"
    if message.body is None or message.body_status not in (STATUS_NAMES[STORED], STATUS_NAMES[DECODED]):
        return f"its body cannot be had: {message.body_status}"
    return None if message.body else "its body is empty, and clients send none without"


def _text(body: bytes | None) -> str | None:
    if body is None or len(body) > TEXT_BYTES:
        return None
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _time(ms: Any) -> str | None:
    """Return the time as text; None outside of the years that a time can have."""
    try:
        return iso_time(ms)
    except (ValueError, OverflowError, OSError):
        return None

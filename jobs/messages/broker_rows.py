"""The rows of `query --view broker`: messages as the release would serve them after a start on the copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from jobs.messages.audited import audited
from jobs.messages.message_query import Query, say
from jobs.runtime.spark_start import LazySpark
from schemas.rows import QueueKey, Row
from store_io.base.errors import StoreError
from store_io.base.java_compat import MAX_LONG
from store_io.messages.message_filter import ALL, MessageFilter, Range
from store_io.messages.message_search import in_body
from store_io.messages.scans import MAX_BODY_BYTES
from store_io.messages.served.broker_view import BrokerView, Served
from store_io.messages.served.served_rows import body_of, served_row
from store_io.model.audit_request import AuditRequest
from store_io.wording.gaps import gap_text
from store_io.wording.refusals import refusal_sentence


def broker_rows(request: AuditRequest, query: Query, spark: LazySpark, stack: ExitStack) -> Iterator[Row]:
    """Yield the messages that the release would serve after a start on the copy.

    They come by queue and queue offset, or as a lookup answers.
    """
    audit = audited(request, spark)
    prediction = audit.prediction
    if audit.failed or prediction is None:
        why = next(map(gap_text, audit.gaps.faults), "the audit is incomplete")
        raise StoreError(f"what a broker would do is not known: {why}")
    release = f"RocketMQ {request.release}"
    if prediction.refusal is not None:
        sentence = refusal_sentence(prediction.refusal)
        raise StoreError(f"{release} would not start on this copy, so it would serve nothing: {sentence}")
    view = stack.enter_context(BrokerView(audit))
    key = query.contents.key or next(iter(query.contents.unique_keys or ()), None)
    for one in _served(view, query, key):
        if _meets(view, one, query):
            yield query.redaction.row(served_row(view, one, query.columns, key))


def _served(view: BrokerView, query: Query, key: str | None) -> Iterator[Served]:
    wanted = query.wanted
    if query.at is not None:
        yield from filter(None, [view.at(query.at)])
        return
    if key is not None and wanted.topics is not None:
        low, high = wanted.store_times
        most = min(query.limit or 1 << 31, 64)
        found = view.by_key(next(iter(wanted.topics)), key, most, low or 0, MAX_LONG if high is None else high - 1)
        yield from found
        if len(found) == most:
            say(f"a lookup by key gives at most {most} messages")
        return
    low, high = wanted.queue_offsets
    queues = [queue for queue in view.queues() if _is_wanted(queue, wanted)]
    yield from view.read([(queue, low or 0, (1 << 62) if high is None else high) for queue in queues])


def _is_wanted(queue: QueueKey, wanted: MessageFilter) -> bool:
    topic, queue_id = queue
    return (wanted.topics is None or topic in wanted.topics) and (wanted.queue_ids is None or queue_id in wanted.queue_ids)


def _within(number: int, bounds: Range) -> bool:
    low, high = bounds
    return (low is None or number >= low) and (high is None or number < high)


def _meets(view: BrokerView, one: Served, query: Query) -> bool:
    """The conditions that a broker's own lookups do not know."""
    wanted, m = query.wanted, one.message
    if query.at is None and not _within(one.phy_offset, wanted.phy_offsets):
        return False
    looked_up = query.at is not None or query.contents.key is not None or query.contents.unique_keys is not None
    in_queue = _is_wanted((one.topic, one.queue_id), wanted) and _within(one.queue_offset, wanted.queue_offsets)
    if looked_up and not in_queue:
        return False
    contents = query.contents  # of them the body: a lookup by key compares hashes alone, and so do we
    if wanted.store_times == ALL and wanted.tags is None and contents.body is None:
        return True
    if m is None:
        return False
    if wanted.tags is not None and m.properties.get("TAGS") not in wanted.tags:
        return False
    if not _within(m.store_time, wanted.store_times):
        return False
    return contents.body is None or in_body(contents.body, body_of(view, one), m.sys_flag, MAX_BODY_BYTES)

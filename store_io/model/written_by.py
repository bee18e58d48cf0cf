"""The releases that can have written a copy, by files that only newer brokers make, and files that they always make.

A trace of a newer release is sure. That a trace is missing, or that a file has an older form, makes an older one likely: a copy
may lack files, and people make an `abort` by hand.
Source: formats.md 1, 2, 7, 9, 11, 12, 14, from the same files of brokers 4.8.0 to 5.5.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from schemas.layouts import checkpoint_layout, commitlog_layout
from schemas.rows import Checkpoint, StoreFile
from store_io.base.wording import names_text
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.releases import KNOWN_RELEASES, parse_known

HEAD_BYTES = 1 << 16  # looked at of a file in config/
HEADS = ("config/topics.json", "config/subscriptionGroup.json", "config/consumerOffset.json")  # their form shows releases
_V1_TOPIC = 127  # UTF-16 units: a longer topic has records of the second version
_SANE = 1 << 62

_BY_NAME: tuple[tuple[str, str], ...] = (  # a path, the first release that makes it
    ("rocksdbstore", "5.4.0"),
    ("consumequeue_rocksdb", "5.4.0"),
    ("config/transactionMetrics", "5.3.0"),
    ("timerwheel", "5.0.0"),
    ("timerlog", "5.0.0"),
    ("batchconsumequeue", "5.0.0"),
    ("compaction", "5.0.0"),
    ("epochFileCheckpoint", "5.0.0"),
    ("brokerIdentity", "5.0.0"),
    ("config/timercheck", "5.0.0"),
    ("config/timermetrics", "5.0.0"),
    ("config/topicQueueMapping.json", "5.0.0"),
    ("config/consumerOrderInfo.json", "5.0.0"),
    ("config/messageRequestMode.json", "5.0.0"),
    ("consumequeue/rmq_sys_wheel_timer", "5.0.0"),
    ("abort.bak", "5.0.0"),
    ("config/lmqConsumerOffset.json", "4.9.3"),
)
_ONE_LINE = re.compile(rb"\{-?[0-9]+:")  # an offset table as fastjson 1 writes it, and as fastjson 2 does
_MANY_LINES = re.compile(rb"\{\s+-?[0-9]+:")


@dataclass(frozen=True)
class Trace:
    """A trace of releases `since` or newer, or older than `before`.

    what: a short phrase.
    """

    what: str
    since: str = ""
    before: str = ""


@dataclass(frozen=True)
class WrittenBy:
    """The range of releases that are likely to have written a copy.

    oldest, newest: the ends of the range.
    surely_since: no release older than this one wrote the copy; empty: nothing is sure.
    """

    oldest: str
    newest: str
    surely_since: str = ""
    newer: tuple[str, ...] = ()  # the traces that make it sure
    older: tuple[str, ...] = ()  # those for which a release is likely no newer

    def sentence(self) -> str:
        """Return the range, how sure it is, and its traces; empty without a trace."""
        if not self.newer and not self.older:
            return ""
        why = []
        if self.newer:
            why.append(f"surely {self.surely_since} or newer: {names_text(self.newer)}")
        if self.older:
            why.append(f"likely not newer than {self.newest}: {names_text(self.older)}")
        return f"written by {self.range_text()} ({'; '.join(why)})"

    def range_text(self) -> str:
        """Return the likely releases."""
        if self.oldest == self.newest:
            return self.oldest
        return f"{self.oldest} or newer" if self.newest == KNOWN_RELEASES[-1] else f"{self.oldest} to {self.newest}"

    def holds(self, release: str) -> bool:
        """Say whether the release lies in the likely range."""
        return parse_known(self.oldest) <= parse_known(release) <= parse_known(self.newest)


def written_by(
    files: Iterable[StoreFile], checkpoint: Checkpoint, heads: Mapping[str, bytes], magics: Iterable[int] = ()
) -> WrittenBy:
    """Return the range of releases that all traces show together.

    heads: beginnings of files in config/.
    magics: those of segments' first records.
    """
    traces = [
        *_of_names({file.path: file for file in files}),
        *_of_checkpoint(checkpoint),
        *_of_config(heads),
    ]
    if commitlog_layout.MAGIC_V2 in magics:
        traces.append(Trace("records of version 2", since="5.1.0"))
    since = [trace for trace in traces if trace.since]
    oldest = max((trace.since for trace in since), key=parse_known, default=KNOWN_RELEASES[0])
    before = [trace for trace in traces if trace.before and parse_known(trace.before) > parse_known(oldest)]
    limit = min((trace.before for trace in before), key=parse_known, default="")
    newest = KNOWN_RELEASES[KNOWN_RELEASES.index(limit) - 1] if limit else KNOWN_RELEASES[-1]
    sure = oldest if since else ""
    newer = tuple(trace.what for trace in since if trace.since == oldest)
    return WrittenBy(oldest, newest, sure, newer, tuple(trace.what for trace in before if trace.before == limit))


def _of_names(entries: Mapping[str, StoreFile]) -> Iterator[Trace]:
    for path, since in _BY_NAME:
        if path in entries:
            yield Trace(path, since=since)
    abort = entries.get(checkpoint_layout.ABORT_FILE)
    if abort is not None and abort.kind == "file":
        yield Trace("abort holds a process id", since="5.0.0") if abort.size else Trace("abort is empty", before="5.0.0")
    if "abort.bak" not in entries and "rocksdbstore" not in entries:
        yield Trace("no abort.bak", before="5.0.0")
    if "rocksdbstore" not in entries:
        yield Trace("no rocksdbstore", before="5.4.0")
    for entry in entries.values():
        top, _, topic = entry.path.partition("/")
        if entry.kind == "directory" and top == "consumequeue" and "/" not in topic and not topic.startswith(LMQ_PREFIX):
            if len(topic.encode("utf-16-le", "surrogatepass")) > 2 * _V1_TOPIC:
                yield Trace(f"a topic of more than {_V1_TOPIC} letters", since="5.1.0")
                return


def _of_checkpoint(checkpoint: Checkpoint) -> Iterator[Trace]:
    fields = (
        ("logicsPhysicalOffset", checkpoint.logics_phy_offset, "5.5.0"),
        ("confirmPhyOffset", checkpoint.confirm_phy_offset, "5.1.1"),
        ("masterFlushedOffset", checkpoint.master_flushed_offset, "5.0.0"),
    )
    for name, value, since in fields:
        if 0 < value < _SANE:
            yield Trace(f"checkpoint has {name}", since=since)


def _of_config(heads: Mapping[str, bytes]) -> Iterator[Trace]:
    for path, head in sorted(heads.items()):
        if b'"stateVersion"' in head:
            yield Trace(f"stateVersion in {path}", since="5.0.0")
        elif path == "config/topics.json" and b'"dataVersion"' in head:
            yield Trace(f"no stateVersion in {path}", before="5.0.0")
        if _MANY_LINES.search(head):
            yield Trace(f"the form of {path}", since="5.4.0")
        elif _ONE_LINE.search(head):
            yield Trace(f"the form of {path}", before="5.4.0")

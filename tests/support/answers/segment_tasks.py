"""A store on disk -> the tasks of its segments, without the audit's own listing."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from schemas.rows import MappedFile, QueueKey, SegmentSummary
from store_io.broker.releases import BrokerRules, Setting, broker_rules
from store_io.kinds.index.index_merge import IndexFileRef, IndexFollower
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.source.byte_source import StoreLocation


def rules_of(conf: str, release: str) -> BrokerRules:
    """The rules of a release under a broker.conf's numbers and flags."""
    found: dict[str, Setting] = {}
    for line in conf.splitlines():
        name, equals, value = (part.strip() for part in line.partition("="))
        if equals and (value in ("true", "false") or value.isdigit()):
            found[name] = Setting(value == "true" if value in ("true", "false") else int(value), "broker.conf")
    return broker_rules(release, found)


def mapped(root: Path, folder: str) -> tuple[MappedFile, ...]:
    """The files of a folder whose names are numbers."""
    if not (root / folder).is_dir():
        return ()
    names = sorted(p.name for p in (root / folder).iterdir() if p.is_file() and p.name.isdigit())
    return tuple(MappedFile(f"{folder}/{n}", int(n), (root / folder / n).stat().st_size) for n in names)


def queues(root: Path, kind: str) -> dict[QueueKey, tuple[MappedFile, ...]]:
    """The files of each queue of that kind."""
    folders = sorted((root / kind).glob("*/*")) if (root / kind).is_dir() else []
    return {(f.parent.name, int(f.name)): mapped(root, f"{kind}/{f.parent.name}/{f.name}") for f in folders if f.name.isdigit()}


def index_refs(root: Path, rules: BrokerRules) -> tuple[IndexFileRef, ...]:
    """The index files, with their headers as stored."""
    found, before = [], 0
    for file in mapped(root, "index"):
        begin, end, begin_phy, end_phy, _, count = struct.unpack(">qqqqii", (root / file.path).read_bytes()[:40])
        found.append(
            IndexFileRef(file.path, file.size, begin_phy, end_phy, begin, count, rules.index_slots, rules.index_max, before)
        )
        before = end
    return tuple(found)


def tasks(root: Path, conf: str, release: str, **more: Any) -> list[SegmentTask]:
    """A task per segment. more: further fields of the tasks."""
    rules = rules_of(conf, release)
    segments = mapped(root, "commitlog")
    batch = queues(root, "batchconsumequeue")
    fields: dict[str, Any] = {
        "batch_topics": frozenset(topic for topic, _ in batch),
        "queue_files": queues(root, "consumequeue"),
        "batch_queue_files": batch,
        "ext_files": queues(root, "consumequeue_ext"),
        "index": IndexFollower(refs) if (refs := index_refs(root, rules)) else None,
        "lmq": rules.multi_dispatch,
        "log_end": max((s.start + s.size for s in segments), default=0),
        "unclean": (root / "abort").exists(),
    } | more
    return [SegmentTask(0, s.path, s.start, s.size, StoreLocation(str(root)), rules, **fields) for s in segments]


def scan_store(root: Path, conf: str, release: str, **more: Any) -> list[SegmentSummary]:
    """The summaries of all segments."""
    return [scan_segment(task) for task in tasks(root, conf, release, **more)]

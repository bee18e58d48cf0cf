"""A compacted topic whose own log holds nothing: its consumers get nothing, and the first line says so with topic and number."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from jobs.report.texts.next_steps import shown_steps
from schemas.finding_codes import Code
from schemas.rows import NOTE, Finding
from store_io.answer.headline import judge, verdict_text
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.stores import compacted
from tests.support.stores.compacted import ENTRIES_FILE, LOG_FILE, TOPIC, folders

NO_LOG = "get none of 54 messages: its compacted log is not in this copy, or empty"


def unserved(audited: Audited) -> list[Finding]:
    return [finding for finding in audited.findings if finding.code == Code.COMPACTED_TOPIC_UNSERVED]


def test_without_its_log_consumers_get_none(tmp_path: Path) -> None:
    store = compacted.build(tmp_path)
    audited = product.audit(store.root, "5.3.3", store.broker_conf)
    (found,) = unserved(audited)
    assert (found.topic, found.count, found.message) == (TOPIC, 54, f"consumers of {TOPIC} {NO_LOG}")
    told = f"Do not start this copy with cleanup.policy=COMPACTION of {TOPIC}: consumers of {TOPIC} {NO_LOG}"
    assert audited.outcome.exit_code == 20 and judge(audited.outcome).headline == told
    assert found.message in verdict_text(audited.outcome)
    steps = shown_steps(audited.outcome, (str(store.root),), "plan.json")
    assert any("docs/kinds/compaction.md 6" in step.text for step in steps)


def test_with_its_log_or_as_an_ordinary_topic_it_is_served(tmp_path: Path) -> None:
    store = compacted.build(tmp_path)
    for release, lines in (("5.0.0", ""), ("5.3.3", "\nenableCompaction=false")):
        assert unserved(product.audit(store.root, release, store.broker_conf + lines)) == []
    compacted.write_logs(store)
    audited = product.audit(store.root, "5.3.3", store.broker_conf)
    assert unserved(audited) == [] and audited.outcome.exit_code == 0


def test_one_queue_without_a_log_counts_alone(tmp_path: Path) -> None:
    store = compacted.build(tmp_path)
    compacted.write_logs(store)
    for folder in folders(store.root, 1):
        shutil.rmtree(folder)
    (found,) = unserved(product.audit(store.root, "5.3.3", store.broker_conf))
    own = sum((record.topic, record.queue_id) == (TOPIC, 1) for record in store.records)
    assert found.count == own and f"get none of {own} messages" in found.message


def test_a_log_without_a_record_is_as_none(tmp_path: Path) -> None:
    store = compacted.build(tmp_path)
    for queue_id in (0, 1):
        for folder, size in zip(folders(store.root, queue_id), (LOG_FILE, ENTRIES_FILE), strict=True):
            folder.mkdir(parents=True)
            (folder / f"{0:020d}").write_bytes(bytes(size))
    assert [found.count for found in unserved(product.audit(store.root, "5.3.3", store.broker_conf))] == [54]


@pytest.mark.parametrize("some", [False, True])
def test_after_a_crash_a_start_puts_those_with_a_key_from_its_start_segment_on(tmp_path: Path, some: bool) -> None:
    """From the first segment on it puts all that the log can hold, so that nothing is left to say above a note."""
    store = compacted.build(tmp_path, clean=False, messages=160)
    late = store.records[-1].store_time + 10_000 if some else 0
    (store.root / "checkpoint").write_bytes(struct.pack(">qqq", late, late, late).ljust(4096, b"\0"))
    audited = product.audit(store.root, "5.3.3", store.broker_conf)
    assert audited.broker is not None and (audited.broker["start_segment"] == f"{0:020d}") is not some
    found = unserved(audited)
    assert bool(found) is some
    for finding in found:
        begins = int(audited.broker["start_segment"])
        own = [record for record in store.records if record.topic == TOPIC]
        put = sum(record.at >= begins and bool(record.properties.get("KEYS", "").strip()) for record in own)
        assert f"get {put or 'none'} of {len(own)} messages" in finding.message and finding.count == len(own) - put
    assert all(f.severity == NOTE for f in audited.findings if f.code == Code.COMPACTED_MESSAGE_MISSING)

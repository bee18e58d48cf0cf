"""Whole stores, damaged anywhere: the scan never raises, and windows, decoders and slots change nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schemas.finding_codes import CATALOGUE
from schemas.rows import Finding, SegmentSummary
from store_io.log.entries import queue_probe, queue_store
from store_io.log.scan.segment_scan import scan_segment
from tests.support.answers.segment_tasks import tasks
from tests.support.stores import strategies
from tests.support.stores.builders import StoreBuilder


def told(summary: SegmentSummary) -> dict[str, Any]:
    fields = dict(vars(summary))
    del fields["bytes_read"]
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in fields.items()}


def in_file(finding: Finding, sizes: dict[str, int]) -> bool:
    """Whether the finding's range is one of its file."""
    return finding.start is not None and finding.end is not None and 0 <= finding.start < finding.end <= sizes[finding.file]


@given(
    strategies.store_builders(most=30),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), strategies.mutations), max_size=4),
    st.integers(0, 4),
    st.integers(64, 5000),
    st.sampled_from([1, 3, 4096]),
)
@settings(max_examples=40, deadline=None)
def test_any_damage_gives_one_answer_however_it_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    builder: StoreBuilder,
    draws: list[tuple[float, strategies.Mutation]],
    undispatched: int,
    window: int,
    slot: int,
) -> None:
    assume(all(len(r.topic) < 256 for r in builder.records))
    made = builder.write(tmp_path_factory.mktemp("store"), undispatched=undispatched, clean=not undispatched)
    # What refuses to be read at all is another test's matter: every file keeps its length.
    strategies.mutate_store(made, [(where, m) for where, m in draws if m.kind not in ("cut",)])
    sizes = {str(p.relative_to(made.root)): p.stat().st_size for p in made.root.rglob("*") if p.is_file()}
    for task in tasks(made.root, made.broker_conf, made.release):
        whole = scan_segment(task)
        assert whole.problem is None
        assert all(f.code in CATALOGUE for f in whole.findings)
        assert [f for f in whole.findings if not in_file(f, sizes)] == []
        ends = [0, *(e.end for e in whole.extents)]
        assert [e.start for e in whole.extents] == ends[:-1]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(queue_store, "CACHED_ENTRIES", slot)
            patch.setattr(queue_probe, "MIN_ENTRIES", min(slot, queue_probe.MIN_ENTRIES))
            for other in (replace(task, window_bytes=window), replace(task, window_bytes=64), replace(task, decoder="reference")):
                assert told(scan_segment(other)) == told(whole)

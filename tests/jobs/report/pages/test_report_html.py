"""The page of a store, without a browser: golden files, hostile text stays text, sizes are bounded."""

from __future__ import annotations

import cProfile
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.report.files.result_files import findings_jsonl, plan_parts
from jobs.report.pages.index_html import index_html
from jobs.report.pages.report_html import report_html
from jobs.report.pages.segment_map import MAX_SHOWN
from jobs.report.texts.summary_text import summary_text
from jobs.report.texts.text import printable
from schemas.advice import Advice, Step
from schemas.losses import GroupBeyond, TopicLoss
from schemas.outcome import Outcome
from schemas.rows import Finding, PlanStep
from schemas.start_effect import LostByStart, QueueLost
from store_io.answer.headline import judge
from tests.support import damage
from tests.support.answers.product import Audited, audit
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter
from tests.support.handmade.samples import HOSTILE_NAMES, hostile_outcome
from tests.support.stores import builders
from tests.support.stores.corpus_tools import Case, cases
from tests.support.texts.golden import check
from tests.support.texts.pages import CONTEXT, Page, index_of, page_of, without_style


@pytest.mark.parametrize("make", samples.MAKERS, ids=lambda m: m.__name__)
def test_page_of_a_store(make: Any) -> None:
    check(f"report-{make.__name__}.html", without_style(page_of(make()).source))


@pytest.mark.parametrize("make", samples.MAKERS, ids=lambda m: m.__name__)
def test_a_page_loads_nothing_runs_nothing_and_can_be_heard(make: Any) -> None:
    assert page_of(make()).problems() == []
    assert page_of(make(), None).problems() == []


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name)[:20])
def test_hostile_text_stays_text(name: str) -> None:
    plain = [tag for tag, _ in page_of(hostile_outcome("plain")).tags]
    page = page_of(hostile_outcome(name), replace(CONTEXT, store_words=("/" + name, "--release", name)))
    assert page.problems() == []
    # The same page, tag for tag, but for the commands, which are left out where no shell can hold a word, and break at options;
    # a path breaks at its slashes.
    leave = ("code", "span", "p", "wbr")
    assert [tag for tag in plain if tag not in leave] == [tag for tag, _ in page.tags if tag not in leave]
    assert page.text.count(printable(name)) >= 15
    assert not set(page.text) & set("\x00\x1b\x07\u202e\ud800")
    listed = index_of([hostile_outcome(name)])
    assert listed.problems() == [] and printable(name) in listed.text


def large() -> Outcome:
    outcome = samples.damaged()
    topics = [f"topic-{i}-{'x' * 100}" for i in range(10_000)]
    codes = [("queue_entry_wrong", "rebuildable"), ("message_lost", "loss"), ("queue_pre_blank", "note")]
    alter(outcome, findings=[
        Finding(
            *(codes[i % 3][0], f"consumequeue/{topics[i % 10_000]}/0/0", i, i + 20, codes[i % 3][1], i, topics[i % 10_000], 0, i),
            expected="1", actual="2", message=f"entry {i}", next=Advice(Step.REBUILD_QUEUE),
        )
        for i in range(100_000)
    ])  # fmt: skip
    alter(
        outcome, queues=[{"topic": t, "queue_id": 0, "wrong": 10, "lost_messages": 1, "load_max_phy_offset": 5} for t in topics]
    )
    alter(outcome, index_files=[{"file": f"index/{i}", "findings": 1, "entries": 5} for i in range(5_000)])
    by_topic, groups = (TopicLoss(t, 1, 1, 2) for t in topics), (GroupBeyond("g", t, 0, 9, 1) for t in topics)
    alter(outcome, loss=replace(outcome.loss, by_topic=tuple(by_topic), groups=tuple(groups)))
    samples.start_changed(outcome, lost=LostByStart(len(topics), 0, [QueueLost(t, 0, 1, 1, 2) for t in topics]))
    alter(outcome, steps=[PlanStep("truncate", "consumequeue/x", 0, 1, f"r{i % 2}") for i in range(10_000)])
    alter(outcome, incomplete=[f"sentence {i}" for i in range(10_000)])
    alter(
        outcome,
        segments=[
            {**samples.damaged().rows.segments[i % 2], "base_offset": i * 1024 + (i // 9) * 4096, "file": f"commitlog/{i:020}"}
            for i in range(5_000)
        ],
    )
    many = [{"kind": kind, "start": at, "end": at + 5} for at in range(0, 1_000_000, 10) for kind in ("message", "damaged")]
    outcome.rows.segments[7] |= {"size_bytes": 1_000_000, "extents": many}
    return outcome


def test_the_page_of_a_large_store_is_bounded_in_size_work_and_pieces() -> None:
    outcome = large()
    profile = cProfile.Profile()
    pieces = profile.runcall(lambda: list(report_html(outcome, CONTEXT)))
    source = "".join(pieces)
    assert sum(entry.callcount for entry in profile.getstats()) < 10_000_000, "calls of functions for 100,000 findings"
    assert len(source) < 3_000_000
    assert max(map(len, pieces)) < 1_000_000
    page = Page(source)
    assert page.problems() == []
    assert "33,314 more findings are not shown here: findings.jsonl" in page.text  # 33,334 of a code, 20 shown
    assert "9,700 more rows are not shown here: the table queues has all" in page.text
    assert "9,700 more sentences are not shown here" in page.text
    assert len([c for c in page.all("svg") if c.get("class") == "bar"]) <= 2 * MAX_SHOWN + 2


@pytest.mark.parametrize(
    ("name", "headline"),
    [
        ("g04-533-clean-all", "Safe to start"),
        ("g14-533-torn-old-seen", "Do not start this copy yet"),
        ("g29-498-cq-wrong", "Do not start this copy before its queues are rebuilt"),
        ("g11-533-zero-tail", "12 messages are missing from this copy already; a start loses none of the others"),
        ("g81-550-logics-time", "A start loses no message, but a rebuild is needed: "),
        ("g76-550-foreign-commitlog", "RocketMQ 5.5.0 does not start on this copy"),
    ],
)
def test_the_answer_for_real_stores(name: str, headline: str, audited: Callable[[Case], Audited]) -> None:
    (case,) = cases(name)
    outcome = audited(case).outcome
    page = page_of(outcome)
    assert headline in page.text and all(why in page.text for why in judge(outcome).why)
    assert page.problems() == []


def test_no_key_tag_property_or_body_reaches_a_result_whatever_is_damaged(tmp_path: Path) -> None:
    builder = builders.StoreBuilder("5.3.3", builders.Sizes(segment=1 << 14))
    own = {"keys": "SECRETkey SECRETother", "tags": "SECRETtag", "uniq": "SECRETuniq", "properties": (("color", "SECRETvalue"),)}
    for number in range(200):
        builder.put(builders.Message(f"t{number % 3}", body=b"SECRETbody" * 9, **own))  # type: ignore[arg-type]
    rng, codes = random.Random(7), set()
    for number in range(12):
        root = tmp_path / str(number)
        store = builder.write(root)
        for _ in range(6):
            record = rng.choice(store.records)
            damage.invert_byte(store.segment_of(record), store.position_of(record) + rng.randrange(record.size))
        outcome = audit(root, "5.3.3", store.broker_conf).outcome
        codes |= {finding.code for finding in outcome.found.findings}
        written = [
            *report_html(outcome),
            *index_html(samples.RUN, [outcome]),
            "".join(plan_parts(outcome)),
            *findings_jsonl(outcome.found.findings),
        ]
        assert "SECRET" not in "".join(written) + summary_text(samples.RUN, [outcome], "/out")
    assert {"commitlog_damaged", "message_disputed", "index_entry_wrong", "properties_malformed"} <= codes

"""Any bytes in a store's files: no exception escapes, extents tile each segment, decoders, windows and repeats agree."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import unicodedata
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.finding_codes import Code
from schemas.rows import NOTE, REBUILDABLE
from store_io.broker.queues import queue_puts
from store_io.broker.releases import KNOWN_RELEASES
from store_io.outcome.plan_writer import audit_plan
from tests.support import damage
from tests.support.answers import differential, product
from tests.support.answers.promises import broken_promises
from tests.support.second_witness import broker as witness
from tests.support.stores import builders, random_stores, strategies
from tests.support.stores.builders import Message, Sizes, StoreBuilder, version_of
from tests.support.stores.strategies import Mutation

EXAMPLES = settings(
    max_examples=10,
    deadline=None,  # the first call compiles
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
MANY = settings(EXAMPLES, max_examples=300)
DRAWS = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), strategies.mutations), max_size=4)
WINDOWS = st.just(300) | st.integers(100, 3000)  # a window holds the whole of a larger record all the same
RELEASES = st.sampled_from(["4.8.0", "4.9.8", "5.1.4", "5.3.3", "5.3.4", "5.4.0", "5.5.0", "5.5.1"])


def rendered(audit: product.Audited) -> str:
    """Plan, findings, exit code and extents, as text."""
    extents = [[asdict(e) for e in segment.extents] for segment in audit.audit.segments]
    return json.dumps(
        [audit_plan(audit.outcome), [asdict(f) for f in audit.findings], audit.outcome.exit_code, extents], sort_keys=True
    )


def mutated_store(
    builder: StoreBuilder, clean: bool, draws: list[tuple[float, Mutation]], release: str, window_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        store = builder.write(Path(scratch) / "store", clean=clean)
        strategies.mutate_store(store, draws)
        audit = product.audit(store.root, release, store.broker_conf)
        assert audit.outcome.exit_code in (0, 3, 10, 20)
        assert broken_promises(store.root, audit.outcome) == []
        for segment in audit.audit.segments:
            if segment.problem:
                continue
            at = 0
            for extent in segment.extents:
                assert extent.start == at < extent.end
                at = extent.end
            assert at == segment.size
        same = rendered(audit)
        assert rendered(product.audit(store.root, release, store.broker_conf)) == same, "two runs differ"
        assert rendered(product.audit(store.root, release, store.broker_conf, decoder="reference")) == same, "decoders differ"
        assert rendered(product.audit(store.root, release, store.broker_conf, window_bytes=window_bytes)) == same, (
            "windows differ"
        )


DRAWN = given(builder=strategies.store_builders(), clean=st.booleans(), draws=DRAWS, release=RELEASES, window_bytes=WINDOWS)
test_mutated_store = EXAMPLES(DRAWN(mutated_store))
test_many_mutated_stores = pytest.mark.soak(MANY(DRAWN(mutated_store)))


@given(data=st.binary(max_size=3000), release=RELEASES)
@settings(EXAMPLES, max_examples=30)
def test_arbitrary_bytes_as_every_file(data: bytes, release: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "store"
        for name in (
            "commitlog/00000000000000000000",
            "consumequeue/T/0/00000000000000000000",
            "index/20260101000000000",
            "checkpoint",
        ):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        audit = product.audit(root, release, None)
        assert audit.outcome.exit_code in (0, 3, 10, 20)
        assert broken_promises(root, audit.outcome) == []


@pytest.mark.parametrize("release", ["4.8.0", "4.9.8", "5.1.4", "5.3.3", "5.5.0"])
def test_a_queue_file_that_begins_inside_an_entry(release: str, tmp_path: Path) -> None:
    """Overlapping and misaligned files of one queue once made the fold go round for ever."""
    builder = StoreBuilder(release, Sizes(segment=1024, queue_file=60))
    for number in range(20):
        builder.put(Message(body=b"%d" % number, uniq=f"u{number}"))
    store = builder.write(tmp_path / "store", clean=False, undispatched=6)
    damage.add_file(store.root / "consumequeue" / "TopicA" / "0" / "+5", bytes(60))
    audit = product.audit(store.root, release, store.broker_conf)
    assert audit.outcome.complete and audit.outcome.exit_code in (10, 20)


@pytest.mark.parametrize(
    ("name", "release"),
    [
        pytest.param(name, release, marks=() if (form + place) % 2 else pytest.mark.soak)
        for form, name in enumerate(["+{:020d}", "{}", "{:040d}", "-0", "\uff10{}", "+{:021d}"])
        for place, release in enumerate(["4.8.0", "4.9.2", "5.1.4", "5.5.0"])
    ],
)
@pytest.mark.parametrize("copied", [False, True])
def test_a_segment_whose_name_java_takes_for_its_number(name: str, release: str, copied: bool, tmp_path: Path) -> None:
    """The first one of three, then the last one; beside itself where it was copied."""
    for which in (0,) if name == "-0" else (0, -1):
        builder = StoreBuilder(release, Sizes(segment=1024))
        while len(builder.records) < 3 or builder.records[-1].at < 2048:
            builder.put(Message(body=bytes(60), uniq=f"u{len(builder.records)}"))
        store = builder.write(tmp_path / f"store{which}", clean=False)
        path = sorted((store.root / "commitlog").iterdir())[which]
        other = path.with_name(name.format(int(path.name)))
        (shutil.copyfile if copied else Path.rename)(path, other)
        audit, (theirs, _) = (
            product.audit(store.root, release, store.broker_conf),
            witness.run(store.root, release, store.broker_conf),
        )
        assert broken_promises(store.root, audit.outcome) == [] and audit.broker is not None
        assert differential.plan_differences(audit.broker, theirs) == []
        assert other.name in {Path(f.file).name for f in audit.findings if f.code == "segment_misnamed"}


def test_a_segment_that_begins_before_the_log_is_not_modelled(tmp_path: Path) -> None:
    store = StoreBuilder("5.3.3", Sizes(segment=1024))
    store.put(Message(body=bytes(60)))
    made = store.write(tmp_path / "store", clean=False)
    damage.add_file(made.root / "commitlog" / "-00000000000000001024", bytes(1024))
    audit = product.audit(made.root, "5.3.3", made.broker_conf)
    assert (
        audit.incomplete == ["commitlog/-00000000000000001024: a segment with physical offsets below 0"] and audit.broker is None
    )
    assert broken_promises(made.root, audit.outcome) == []


@pytest.mark.parametrize("number", ["3", "-3", "0", "\u0663", "0" * 20 + "3"])
def test_messages_of_an_inner_batch_count_one_by_one_everywhere(number: str, tmp_path: Path) -> None:
    """What a start loses is a part of what there is. INNER_NUM as damage, or another client, may leave it."""
    builder = StoreBuilder("5.3.3", Sizes(segment=4096), batch_topics={"Batch"})
    for count in (2, 3):
        builder.put(Message("Batch", 0, builders.inner_body([b"m"] * count), inner_count=count))
    digits = "".join(str(unicodedata.decimal(c, "")) for c in number)
    odd = int(("-" if number[0] == "-" else "") + digits)
    builder.put(Message("Batch", 0, b"m" * 90, properties=(("INNER_NUM", number), ("INNER_BASE", "5"))))
    store = builder.write(tmp_path / "store", clean=False, undispatched=3)
    damage.early_blank(store, builder.records[0])
    for decoder in ("fast", "reference"):
        audit = product.audit(store.root, "5.3.3", store.broker_conf, decoder=decoder)
        assert broken_promises(store.root, audit.outcome) == [] and audit.broker is not None
        assert audit.outcome.holds.messages == 3 + max(0, odd) == audit.broker["lost"]["messages"]


def test_random_stores_are_of_every_release() -> None:
    assert set(random_stores.RELEASES) == set(KNOWN_RELEASES)


@pytest.mark.parametrize(("stores", "cut", "releases"), [(40, 5, 11), pytest.param(5000, 20, 15, marks=pytest.mark.soak)])
def test_random_stores_agree_with_the_second_witness(stores: int, cut: int, releases: int) -> None:
    figures = differential.run(stores, seed=20, verbose=False)
    assert not figures.disagreements, f"{figures}\n" + "".join(figures.disagreements[:5])
    assert figures.cut > cut and len(figures.releases) > releases, str(figures)


def test_random_stores_agree_where_even_few_queues_are_dispatched_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small stores have few queues; what thousands go through must give the same."""
    monkeypatch.setattr(queue_puts, "FEW_ROWS", 1)
    figures = differential.run(25, seed=22, verbose=False)
    assert not figures.disagreements, f"{figures}\n" + "".join(figures.disagreements[:5])


@pytest.mark.parametrize("number", [n if n < 25 else pytest.param(n, marks=pytest.mark.soak) for n in range(60)])
def test_undamaged_random_store_raises_no_alarm(number: int, tmp_path: Path) -> None:
    """Any healthy store, read by its own release or a later one: at most notes, after a kill at most rebuildable."""
    rng = random.Random(f"undamaged/{number}")
    release = rng.choice(random_stores.RELEASES)
    builder = random_stores.random_builder(rng, release, healthy=True)
    clean = rng.random() < 0.6
    lag = 0 if clean else rng.randrange(min(len(builder.records), 12) + 1)
    store = builder.write(tmp_path / "store", clean=clean, undispatched=lag)
    later = [r for r in random_stores.RELEASES if version_of(r) >= version_of(release)]
    audit = product.audit(store.root, rng.choice([release, rng.choice(later)]), store.broker_conf)
    assert audit.outcome.complete, audit.incomplete
    found = [f for f in audit.findings if f.code != Code.CONFIG_NOT_COPIED]  # these stores have no config/
    assert {f.severity for f in found} <= ({NOTE} if clean else {NOTE, REBUILDABLE}), audit.above_note[:3]
    retried = any(topic.startswith(("%RETRY%", "%DLQ%", "rmq_sys_REVIVE_LOG")) for topic, _ in builder.next_offsets)
    assert len(found) == len(audit.findings) or retried and not (store.root / "config").exists()

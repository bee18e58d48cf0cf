"""What is taken over of a killed run: whole, complete outcomes of the same question about the same bytes, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pickle
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jobs.audit import finished_stores
from jobs.audit.finished_stores import FinishedStores
from jobs.cli.options import AuditOptions
from jobs.cli.start_options import AskedStart
from jobs.cli.stores import StoreArgument
from jobs.runtime.output import KEPT, OutputFolder
from schemas.first_day import StartMoment
from schemas.outcome import Outcome
from schemas.rows import EarlierRun, EarlierSegment
from store_io.audit.audit_store import StoreAudit, run_audit
from store_io.base import packed
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import list_folder
from tests.support.handmade.outcome_fields import varied
from tests.support.processes.deadly_tasks import fleet
from tests.support.stores.corpus_tools import cases


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoreArgument, ...]:
    """Two stores for all tests that leave them as they are."""
    return fleet(tmp_path_factory.mktemp("fleet"))[:2]


@pytest.fixture
def asked(written: tuple[StoreArgument, ...], tmp_path: Path) -> AuditOptions:
    return AuditOptions(written, str(tmp_path / "out"), run_id="night", run_id_named=True)


@cache
def audited(store: StoreArgument) -> StoreAudit:
    return run_audit(AuditRequest(store.name, StoreLocation(store.path, store.parts), store.release, store.broker_conf))


def copied(asked: AuditOptions, folder: Path) -> AuditOptions:
    """The same of copies of the stores, which a test changes."""
    stores = tuple(replace(store, path=str(shutil.copytree(store.path, folder / store.name))) for store in asked.stores)
    return replace(asked, stores=stores)


def folder(asked: AuditOptions) -> OutputFolder:
    output = OutputFolder(asked.out)
    output.begin([store.name for store in asked.stores], keep=True)
    return output


@pytest.fixture
def outcomes(asked: AuditOptions) -> list[Outcome]:
    """Kept, of both stores."""
    return keep(asked)


def keep(asked: AuditOptions) -> list[Outcome]:
    kept, found = FinishedStores(folder(asked), asked), []
    kept.take({})
    for store in asked.stores:
        audit = audited(store)
        found.append(replace(audit.outcome(), key=store.key))
        kept.keep(store, found[-1], audit.copy.listing)
    return found


def taken(asked: AuditOptions, earlier: dict[str, EarlierRun] | None = None) -> dict[int, Outcome]:
    return FinishedStores(folder(asked), asked).take(earlier or {})


def test_all_is_taken_over_as_it_was(asked: AuditOptions, outcomes: list[Outcome]) -> None:
    assert taken(asked) == dict(enumerate(outcomes))
    FinishedStores(folder(asked), asked).forget()
    assert taken(asked) == {}


def kept_file(asked: AuditOptions, number: int = 0) -> Path:
    return Path(asked.out, asked.stores[number].name, KEPT)


def touch(asked: AuditOptions) -> None:
    os.utime(Path(asked.stores[0].path, "checkpoint"), ns=(1, 1))


def add(asked: AuditOptions) -> None:
    Path(asked.stores[0].path, "abort").touch()


def tables(asked: AuditOptions) -> None:
    Path(asked.stores[0].path, "rocksdbstore").mkdir()
    Path(asked.stores[0].path, "rocksdbstore", "000001.sst").touch()


def cut(asked: AuditOptions) -> None:
    content = kept_file(asked).read_bytes()
    kept_file(asked).write_bytes(content[: len(content) // 2])


def spoil(asked: AuditOptions) -> None:
    content = bytearray(kept_file(asked).read_bytes())
    content[-9] ^= 1
    kept_file(asked).write_bytes(content)


@pytest.mark.parametrize("change", [touch, add, tables, cut, spoil])
def test_a_store_that_changed_or_was_not_kept_whole_is_read_again(
    asked: AuditOptions, tmp_path: Path, change: Callable[[AuditOptions], None]
) -> None:
    asked = copied(asked, tmp_path)
    outcomes = keep(asked)
    change(asked)
    assert taken(asked) == {1: outcomes[1]}


@pytest.mark.parametrize(
    "other",
    [
        {"run_id": "other"},
        {"run_id_named": False},
        {"level": "quick"},
        {"tables": "/elsewhere"},
        {"since_run": "last"},
        {"write": frozenset({"messages"})},
    ],
)
def test_another_question_takes_nothing_over(
    asked: AuditOptions, outcomes: list[Outcome], other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert taken(replace(asked, **other)) == {}
    assert len(taken(replace(asked, max_rate=10**6, max_seconds=60.0))) == 2  # how fast, not what
    conf = replace(asked.stores[0], broker_conf="duplicationEnable=true\n")
    assert taken(replace(asked, stores=(conf, asked.stores[1]))) == {1: outcomes[1]}
    monkeypatch.setattr(finished_stores, "RULES_VERSION", "0")
    assert taken(asked) == {}


def test_an_earlier_run_that_is_another_one_counts(asked: AuditOptions, outcomes: list[Outcome]) -> None:
    store = asked.stores[0].key
    assert taken(asked, {store: EarlierRun("before", "5.3.3", {}, {})}) == {1: outcomes[1]}


def test_what_other_runs_have_found_meanwhile_counts(asked: AuditOptions, outcomes: list[Outcome]) -> None:
    """The run that is named is still the same: the segment must be read now."""
    store, known = asked.stores[0].key, EarlierSegment(1, 7, "e", False, "before")
    before = EarlierRun("before", "5.3.3", {}, {"commitlog/0": known})
    found = EarlierRun("before", "5.3.3", {}, {"commitlog/0": replace(known, damaged=True)})
    on_a_queue = replace(before, derived=[("consumequeue/T/0/0", 7, 1)])
    finished = FinishedStores(folder(asked), asked)
    finished.take({store: before})
    finished.keep(asked.stores[0], outcomes[0], list_folder(StoreLocation(asked.stores[0].path)))
    assert 0 in taken(asked, {store: before})
    assert 0 not in taken(asked, {store: found}) and 0 not in taken(asked, {store: on_a_queue})


def put(asked: AuditOptions, content: str) -> None:
    """In place of what was kept of the first store, with a sum that fits."""
    head = json.loads(kept_file(asked).read_bytes().partition(b"\n")[0])
    head["sha256"] = hashlib.sha256(content.encode()).hexdigest()
    kept_file(asked).write_bytes(f"{json.dumps(head)}\n{content}".encode())


def form(outcome: Outcome, **changed: Any) -> str:
    """What is kept of an outcome, with other values of its fields and of the fields of these."""
    whole = json.loads(json.dumps(outcome, default=finished_stores._form))
    for name, value in changed.items():
        inner = isinstance(value, dict) and isinstance(whole.get(name), dict)
        whole[name] = whole[name] | value if inner else value
    return json.dumps(whole)


@pytest.mark.parametrize(
    "changed",
    [
        {"found": {"findings": [{"code": "queue-file-missing"}]}},  # without its other fields
        {"found": {"findings": None}},
        {"found": None},
        {"more": 1},
        {"gaps": [["no-such-cause", "", [], None]]},
        {"loss": {"__class__": "Finding"}},
        {"rows": {"segments": [7]}},
        {"rows": {"queues": [{"nope": 1}]}},
        {"key": "another"},
        {"location_text": "/elsewhere"},
        {"replica_group": "g"},
        {"holds": {"messages": "1"}},
        {"name": []},
        {"found": {"counts": [[[], 1]]}},
    ],
)
def test_what_is_no_outcome_is_read_again(asked: AuditOptions, outcomes: list[Outcome], changed: dict[str, Any]) -> None:
    put(asked, form(outcomes[0]))
    assert taken(asked) == dict(enumerate(outcomes))
    put(asked, form(outcomes[0], **changed))
    assert taken(asked) == {1: outcomes[1]}


@pytest.mark.parametrize("content", ["", "null", "[]", "7", "[" * 200_000, "9" * 5000])
def test_what_cannot_be_parsed_is_read_again(asked: AuditOptions, outcomes: list[Outcome], content: str) -> None:
    put(asked, content)
    assert taken(asked) == {1: outcomes[1]}
    kept_file(asked).write_text(content)
    assert taken(asked) == {1: outcomes[1]}


@pytest.mark.parametrize("change", [{"name": "other"}, {"release": "4.9.4"}, {"incomplete": ["why"]}, {"exit_code": 3}])
def test_an_outcome_of_another_store_is_not_taken_over(
    asked: AuditOptions, outcomes: list[Outcome], change: dict[str, Any]
) -> None:
    put(asked, form(replace(outcomes[0], **change)))
    assert taken(asked) == {1: outcomes[1]}


def test_what_is_kept_is_bounded(asked: AuditOptions, outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("_MOST_BYTES", 1000 - (1 << 20)), ("_MOST_ROWS", 1)):
        with monkeypatch.context() as context:
            context.setattr(finished_stores, name, most)
            assert name == "_MOST_ROWS" or taken(asked) == {}
            kept_file(asked).unlink(missing_ok=True)
            FinishedStores(folder(asked), asked).keep(asked.stores[0], outcomes[0], audited(asked.stores[0]).copy.listing)
            assert not kept_file(asked).exists()


def test_only_a_regular_file_is_read(asked: AuditOptions, outcomes: list[Outcome], tmp_path: Path) -> None:
    whole = kept_file(asked).read_bytes()
    for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path), lambda path: os.symlink(tmp_path / "x", path)):
        (tmp_path / "x").write_bytes(whole)
        kept_file(asked).unlink()
        make(kept_file(asked))
        assert taken(asked) == {1: outcomes[1]}
        if kept_file(asked).is_dir():
            kept_file(asked).rmdir()
            kept_file(asked).touch()


def test_a_planted_pickle_does_nothing(asked: AuditOptions, outcomes: list[Outcome], tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "called"),)

    whole = pickle.dumps(Hostile())
    head = kept_file(asked).read_bytes().partition(b"\n")[0]
    for planted in (whole, head + b"\n" + whole, head + b"\n" + base64.b64encode(zlib.compress(whole))):
        kept_file(asked).write_bytes(planted)
        assert taken(asked) == {1: outcomes[1]}
    assert not (tmp_path / "called").exists()


def test_an_incomplete_outcome_is_not_kept(asked: AuditOptions, outcomes: list[Outcome]) -> None:
    kept_file(asked).unlink()
    kept = FinishedStores(folder(asked), asked)
    kept.keep(asked.stores[0], replace(outcomes[0], incomplete=["why"]), audited(asked.stores[0]).copy.listing)
    assert not kept_file(asked).exists()


def test_copies_of_one_log_are_taken_over_together(asked: AuditOptions, tmp_path: Path) -> None:
    asked = copied(asked, tmp_path)
    outcomes = keep(asked)
    asked = replace(asked, stores=tuple(replace(store, replica_group="g") for store in asked.stores))
    kept = FinishedStores(folder(asked), asked)
    for store, outcome in zip(asked.stores, outcomes, strict=True):
        kept.keep(store, replace(outcome, replica_group="g"), audited(store).copy.listing)
    assert len(taken(asked)) == 2
    third = replace(asked.stores[0], name="third", path=f"{asked.out}/none")
    assert taken(replace(asked, stores=asked.stores[:1])) == {}, "the run was of both"
    assert taken(replace(asked, stores=(*asked.stores, replace(third, replica_group="h")))).keys() == {0, 1}
    moved = replace(asked.stores[1], replica_group="h")
    assert taken(replace(asked, stores=(asked.stores[0], moved, third))) == {}, "another copy in its place"
    assert taken(replace(asked, stores=(asked.stores[0], moved))) == {}, "alone in its group now"
    touch(asked)
    assert taken(asked) == {}


def test_every_kind_of_outcome_can_be_kept(tmp_path: Path) -> None:
    """Of damaged stores, DLedger groups, controller mode, and of several releases compared."""
    stores = []
    for case in cases("g04", "g19", "g29", "g49", "g103", "g110", "g113"):
        case.unpack(tmp_path / case.name)
        stores.append(StoreArgument(case.name, str(tmp_path / case.name / "store"), case.release, case.broker_conf))
    assert len(stores) == 7
    asked = AuditOptions(tuple(stores), str(tmp_path / "out"), run_id="night", run_id_named=True)
    kept, found = FinishedStores(folder(asked), asked), {}
    for number, store in enumerate(stores):
        audit = audited(store)
        outcome = replace(audit.outcome(), key=store.key)
        kept.keep(store, outcome, audit.copy.listing)
        if outcome.complete:
            found[number] = outcome
    assert len(found) > 4
    assert taken(asked) == found


def test_packed_rows_and_times_of_earlier_readings_are_taken_over(
    asked: AuditOptions, outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "_TOGETHER", 2)
    row = {**outcomes[0].rows.segments[0], "verified_run": "before", "verified_at": datetime(2026, 1, 2, 3, 4, 5, 6, UTC)}
    rows = outcomes[0].rows
    held = varied(outcomes[0], queues=packed.PackedList(rows.queues), segments=[row, *rows.segments[1:]])
    FinishedStores(folder(asked), asked).keep(asked.stores[0], held, audited(asked.stores[0]).copy.listing)
    assert taken(asked) == {0: held, 1: outcomes[1]}


def test_a_store_is_read_again_for_another_moment_that_is_named(asked: AuditOptions, outcomes: list[Outcome]) -> None:
    def of(start: AskedStart) -> AuditOptions:
        return replace(asked, stores=tuple(replace(store, start=start) for store in asked.stores))

    assert len(outcomes) == len(taken(of(AskedStart()))) == 2
    for start in (AskedStart(5), AskedStart(after_stop=True), AskedStart(timezone="UTC"), AskedStart(disk_used=5.0)):
        assert taken(of(start)) == {}


def test_the_first_day_is_kept_with_its_store(asked: AuditOptions) -> None:
    kept, store = FinishedStores(folder(asked), asked), asked.stores[0]
    kept.take({})
    request = AuditRequest(store.name, StoreLocation(store.path, store.parts), store.release, store.broker_conf)
    audit = run_audit(replace(request, start=StartMoment(1_795_879_455_000, disk_used=99.0)))
    outcome = replace(audit.outcome(), key=store.key)
    assert outcome.first_day is not None and outcome.first_day.retention is not None
    kept.keep(store, outcome, audit.copy.listing)
    assert taken(asked)[0].first_day == outcome.first_day

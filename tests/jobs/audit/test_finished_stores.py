"""What is taken over of a killed run: whole, complete outcomes of the same question about the same bytes, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import pickle
import shutil
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
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
from schemas.advice import Cause
from schemas.finding_codes import Code
from schemas.first_day import StartMoment
from schemas.rows import AuditOutcome, EarlierRun, EarlierSegment, Finding
from store_io.audit.audit_store import StoreAudit, run_audit
from store_io.base import packed
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from store_io.source.store_dir import list_folder
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
def outcomes(asked: AuditOptions) -> list[AuditOutcome]:
    """Kept, of both stores."""
    return keep(asked)


def keep(asked: AuditOptions) -> list[AuditOutcome]:
    kept, found = FinishedStores(folder(asked), asked), []
    kept.take({})
    for store in asked.stores:
        audit = audited(store)
        found.append(audit.outcome())
        kept.keep(store, found[-1], audit.copy.listing)
    return found


def taken(asked: AuditOptions, earlier: dict[str, EarlierRun] | None = None) -> dict[int, AuditOutcome]:
    return FinishedStores(folder(asked), asked).take(earlier or {})


def test_all_is_taken_over_as_it_was(asked: AuditOptions, outcomes: list[AuditOutcome]) -> None:
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
    asked: AuditOptions, outcomes: list[AuditOutcome], other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert taken(replace(asked, **other)) == {}
    assert len(taken(replace(asked, max_rate=10**6, max_seconds=60.0))) == 2  # how fast, not what
    conf = replace(asked.stores[0], broker_conf="duplicationEnable=true\n")
    assert taken(replace(asked, stores=(conf, asked.stores[1]))) == {1: outcomes[1]}
    monkeypatch.setattr(finished_stores, "RULES_VERSION", "0")
    assert taken(asked) == {}


def test_an_earlier_run_that_is_another_one_counts(asked: AuditOptions, outcomes: list[AuditOutcome]) -> None:
    store = asked.stores[0].key
    assert taken(asked, {store: EarlierRun("before", "5.3.3", {}, {})}) == {1: outcomes[1]}


def test_what_other_runs_have_found_meanwhile_counts(asked: AuditOptions, outcomes: list[AuditOutcome]) -> None:
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


def put(asked: AuditOptions, content: bytes, packed: bytes | None = None, **changed: Any) -> None:
    """In place of what was kept of the first store, with sums that fit."""
    head = json.loads(kept_file(asked).read_bytes().partition(b"\n")[0])
    packed = base64.b64encode(zlib.compress(content)) if packed is None else packed
    head |= {"packed": hashlib.sha256(packed).hexdigest(), "bytes": len(content), **changed}
    kept_file(asked).write_bytes(json.dumps(head).encode() + b"\n" + packed)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x04h\x05.",  # no such entry of the memo
        b"\x80\x04cschemas.rows\nAuditOutcome\n)\x81.",  # without its fields
        b"\x80\x04cschemas.rows\nFinding\n.",
        b"(" * 5000,
    ],
)
def test_what_cannot_be_loaded_is_read_again(asked: AuditOptions, outcomes: list[AuditOutcome], content: bytes) -> None:
    put(asked, content)
    assert taken(asked) == {1: outcomes[1]}


@pytest.mark.parametrize("change", [{"name": "other"}, {"release": "4.9.4"}, {"complete": False}, {"exit_code": 3}])
def test_an_outcome_of_another_store_is_not_taken_over(
    asked: AuditOptions, outcomes: list[AuditOutcome], change: dict[str, Any]
) -> None:
    put(asked, pickle.dumps(outcomes[0]))
    assert taken(asked) == dict(enumerate(outcomes))
    put(asked, pickle.dumps(replace(outcomes[0], **change)))
    assert taken(asked) == {1: outcomes[1]}


def test_what_is_kept_is_bounded(asked: AuditOptions, outcomes: list[AuditOutcome], monkeypatch: pytest.MonkeyPatch) -> None:
    packed = base64.b64encode(zlib.compress(bytes(64 << 20)))
    for size in (1000, 64 << 20, 1 << 40, -1, None, "1"):
        put(asked, b"", packed, bytes=size)
        tracemalloc.start()
        assert taken(asked) == {1: outcomes[1]}
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert size == 64 << 20 or most < 16 << 20
    kept_file(asked).write_bytes(b"[" * 200_000 + b"\n")
    assert taken(asked) == {1: outcomes[1]}
    monkeypatch.setattr(finished_stores, "_PACKED_BYTES", 1000 - (1 << 20))
    assert taken(asked) == {}
    kept_file(asked).unlink()
    FinishedStores(folder(asked), asked).keep(asked.stores[0], outcomes[0], audited(asked.stores[0]).copy.listing)
    assert not kept_file(asked).exists()


def test_only_a_regular_file_is_read(asked: AuditOptions, outcomes: list[AuditOutcome], tmp_path: Path) -> None:
    whole = kept_file(asked).read_bytes()
    for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path), lambda path: os.symlink(tmp_path / "x", path)):
        (tmp_path / "x").write_bytes(whole)
        kept_file(asked).unlink()
        make(kept_file(asked))
        assert taken(asked) == {1: outcomes[1]}
        if kept_file(asked).is_dir():
            kept_file(asked).rmdir()
            kept_file(asked).touch()


def test_what_is_kept_can_only_be_rows(asked: AuditOptions, outcomes: list[AuditOutcome], tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "called"),)

    put(asked, pickle.dumps(Hostile()))
    assert taken(asked) == {1: outcomes[1]}
    assert not (tmp_path / "called").exists()


def test_an_incomplete_outcome_is_not_kept(asked: AuditOptions, outcomes: list[AuditOutcome]) -> None:
    kept_file(asked).unlink()
    kept = FinishedStores(folder(asked), asked)
    kept.keep(asked.stores[0], replace(outcomes[0], complete=False), audited(asked.stores[0]).copy.listing)
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
        outcome = audit.outcome()
        kept.keep(store, outcome, audit.copy.listing)
        if outcome.complete:
            found[number] = outcome
    assert len(found) > 4
    assert taken(asked) == found


def with_parts(outcome: AuditOutcome) -> AuditOutcome:
    """As one of very many queues and files is."""
    inputs: packed.PackedList[Any] = packed.PackedList(outcome.inputs)
    return replace(outcome, queues=packed.PackedList(outcome.queues), inputs=inputs)


def test_a_store_of_very_many_queues_is_taken_over(
    asked: AuditOptions, outcomes: list[AuditOutcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "FEW", 1)
    monkeypatch.setattr(packed, "_TOGETHER", 2)
    large = with_parts(outcomes[0])
    FinishedStores(folder(asked), asked).keep(asked.stores[0], large, audited(asked.stores[0]).copy.listing)
    again = taken(asked)[0]
    assert again == outcomes[0] and isinstance(again.queues, packed.PackedList) and len(again.queues.parts) > 1
    monkeypatch.setattr(finished_stores._PlainWithParts, "_left", sum(len(zlib.decompress(p)) for p in again.queues.parts))
    assert taken(asked) == {1: outcomes[1]}
    monkeypatch.undo()
    monkeypatch.setattr(finished_stores, "_PART_BYTES", 100)
    assert taken(asked) == {1: outcomes[1]}


def test_rows_that_lie_packed_can_only_be_rows(
    asked: AuditOptions, outcomes: list[AuditOutcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "called"),)

    part = zlib.compress(pickle.dumps([Hostile()]))
    rows: packed.PackedList[Any] = packed.PackedList([])
    monkeypatch.setattr(rows, "_parts", [part])
    hostile = replace(outcomes[0], queues=rows)
    FinishedStores(folder(asked), asked).keep(asked.stores[0], hostile, audited(asked.stores[0]).copy.listing)
    assert taken(asked) == {1: outcomes[1]} and not (tmp_path / "called").exists()


class ByName(pickle.Pickler):
    """Writes members of enumerations as Python up to 3.11.3 does."""

    def reducer_override(self, value: Any) -> Any:
        return (getattr, (type(value), value.name)) if isinstance(value, Enum) else NotImplemented


def by_name(value: Any) -> io.BytesIO:
    stream = io.BytesIO()
    ByName(stream, protocol=5).dump([value])
    return io.BytesIO(stream.getvalue())


@pytest.mark.parametrize("value", [Code.QUEUE_FILE_MISSING, Cause.TIME_LIMIT])
def test_members_of_enumerations_are_read_however_python_writes_them(value: Enum) -> None:
    assert finished_stores._Plain(by_name(value)).load() == [value]


@pytest.mark.parametrize("name", ["mro", "__class__", "__subclasses__"])
def test_nothing_but_a_member_is_got_by_its_name(name: str) -> None:
    with pytest.raises(pickle.UnpicklingError):
        finished_stores._member(Code, name)
    with pytest.raises(pickle.UnpicklingError):
        finished_stores._member(Finding, name)


def test_a_store_is_read_again_for_another_moment_that_is_named(asked: AuditOptions, outcomes: list[AuditOutcome]) -> None:
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
    outcome = audit.outcome()
    assert outcome.first_day is not None and outcome.first_day.retention is not None
    kept.keep(store, outcome, audit.copy.listing)
    assert taken(asked)[0].first_day == outcome.first_day

"""What was fetched is kept for all processes: no byte comes twice, and none that is damaged or of another version."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from dev.bench_stores import write_store
from dev.sample_store import RELEASE, SampleStore
from schemas.advice import Cause, Gap
from schemas.outcome import Outcome
from store_io.audit.audit_store import run_local
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.repair.plan_repair_section import repairs_of, steps_tasks
from store_io.source import disk_cache, remote_file
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.store_dir import changes_since, list_store
from tests.support.damage import overwrite
from tests.support.handmade.outcome_fields import alter
from tests.support.processes.s3_server import BUCKET, S3Server, forget, windows
from tests.support.stores import corpus_tools

SEGMENT = "commitlog/00000000000000000000"
DATA = bytes(i % 251 for i in range(300_000))


def source(since: int | None = None) -> ByteSource:
    """The store; a process that knows nothing of it yet."""
    forget()
    given = {} if since is None else {"since": since}
    return open_source(StoreLocation(f"s3://{BUCKET}/s", **given))


def read(own: ByteSource, start: int = 0, size: int = len(DATA)) -> bytes:
    with own.open(SEGMENT) as file:
        return file.read(start, size)


def kept_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "used"]


def test_what_one_process_has_fetched_another_reads(server: S3Server, on_disk: Path) -> None:
    server.put(f"s/{SEGMENT}", DATA)
    since = StoreLocation("").since
    server.requests.clear()
    assert read(source(since)) == DATA
    child = os.fork()
    if child == 0:
        os._exit(
            0 if read(open_source(StoreLocation(f"s3://{BUCKET}/s", since=since)), 70_000, 100_000) == DATA[70_000:170_000] else 1
        )
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(server.requests) == 1
    assert {path.stat().st_mode & 0o77 for path in on_disk.rglob("*")} == {0}, "for this user alone"


def test_who_comes_while_it_is_fetched_waits(server: S3Server, on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_file, "REQUEST_BYTES", 1 << 17)
    server.put(f"s/{SEGMENT}", DATA)
    own = source()
    threads, found = [threading.Thread(target=lambda: found.append(read(own))) for _ in range(8)], []
    server.requests.clear()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [DATA] * 8 and len(server.requests) == 3


def test_an_object_that_is_replaced_is_another(server: S3Server, on_disk: Path) -> None:
    server.put(f"s/{SEGMENT}", DATA)
    before = source()
    assert read(before, 0, 10) == DATA[:10]
    with before.open(SEGMENT) as old:
        server.put(f"s/{SEGMENT}", DATA[::-1])
        assert read(source(), 0, 1000) == DATA[::-1][:1000], "a later run sees what is there"
        assert old.read(0, 1000) == DATA[:1000], "never a mixture"
    assert read(source()) == DATA[::-1]


def test_bytes_that_the_disk_has_damaged_are_fetched_again(server: S3Server, on_disk: Path) -> None:
    server.put(f"s/{SEGMENT}", DATA)
    since = StoreLocation("").since
    read(source(since))
    (kept,) = kept_files(on_disk)
    with open(kept, "r+b") as file:
        file.seek(-100_000, os.SEEK_END)
        file.write(b"\xff" * 10)
    server.requests.clear()
    assert read(source(since)) == DATA and len(server.requests) == 1
    overwrite(kept, 20, b"\xff")
    assert read(source(since)) == DATA
    kept.unlink()
    assert read(source(since)) == DATA


@pytest.mark.parametrize("most", [0, 100_000, 1 << 20])
def test_no_more_is_kept_than_fits(server: S3Server, on_disk: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(disk_cache, "MOST_BYTES", most)
    for number in range(8):
        server.put(f"s/config/{number}", DATA)
    server.requests.clear()
    for _ in range(2):
        own = source(1)
        assert [own.read_small(f"config/{number}") for number in range(8)] == [DATA] * 8
    assert sum(path.stat().st_blocks * 512 for path in kept_files(on_disk)) <= most + 8 * 8192
    fetched = sum(int(r.range.partition("-")[2]) - int(r.range[6:].partition("-")[0]) + 1 for r in server.requests)
    assert fetched > len(DATA) * 8
    disk_cache.forget(f"s3://{BUCKET}/s")
    assert not kept_files(on_disk) and disk_cache.has_room(1) == (most > 0)


def test_a_disk_that_fails_is_done_without(server: S3Server, on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.put(f"s/{SEGMENT}", DATA)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        assert read(source()) == DATA
    (on_disk / "fetched").chmod(0)
    try:
        assert read(source()) == DATA
    finally:
        (on_disk / "fetched").chmod(0o700)
    on_disk.rename(on_disk.with_name("gone"))
    assert read(source()) == DATA and not on_disk.exists()


@pytest.mark.parametrize("name", ["pwrite", "pread", "flock"])
def test_a_counter_that_fails_is_done_without(
    server: S3Server, on_disk: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The file that counts what is kept: no fault of it ends an audit."""
    server.put(f"s/{SEGMENT}", DATA)
    assert read(source()) == DATA and disk_cache.has_room(1)
    counter = (on_disk / "fetched" / "used").stat().st_ino
    module = fcntl if name == "flock" else os
    call = getattr(module, name)

    def failing(handle: int, *more: object) -> object:
        if os.fstat(handle).st_ino == counter:
            raise OSError(5, "Input/output error")
        return call(handle, *more)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, failing)
        assert disk_cache.has_room(1) == (name == "pwrite")
        assert read(source()) == DATA
        disk_cache.forget(f"s3://{BUCKET}/s")
    assert read(source()) == DATA and disk_cache.has_room(1)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_file_with_too_many_grains_is_not_kept(on_disk: Path, monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    monkeypatch.setattr(disk_cache, "LONGEST_BYTES", 1 << 20)
    kept = disk_cache.KeptFile.of("s3://b/s", "file a")
    assert kept is not None and kept.begin(disk_cache.Opened((1 << 20) + more, "v", 1)) == (more < 1)
    kept.close()


def test_no_folder_of_another_kind_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(disk_cache.PLACE, raising=False)
    for name in ("blockmgr-1", "data"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/data,{tmp_path}/blockmgr-1")
    assert not disk_cache.folder() and not list((tmp_path / "data").iterdir()), "Spark does not remove it"
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/blockmgr-1")
    assert disk_cache.folder() == f"{tmp_path}/blockmgr-1/fetched"


def test_a_store_is_listed_once_and_once_more_at_the_end(server: S3Server, on_disk: Path) -> None:
    for key in (SEGMENT, "consumequeue/T/0/0", "config/topics.json", "abort"):
        server.put(f"s/{key}", b"x")
    location = StoreLocation(f"s3://{BUCKET}/s")
    server.requests.clear()
    listing = list_store(location)
    assert len(server.requests) == 4, "the root, and each folder that a store has"
    forget()
    assert list_store(location).files == listing.files and len(server.requests) == 4
    server.put("s/commitlog/1", b"x")
    assert list_store(location).files == listing.files, "the same for all tasks"
    assert changes_since(listing) == [Gap(Cause.APPEARED, "commitlog/1")]


def asked_bytes(server: S3Server, root: Path) -> int:
    """The bytes of the store's files that were asked for, by the length that each has."""
    found = 0
    for request in server.reads():
        path = root / request.key.removeprefix("store/")
        if request.range and path.is_file():
            first, last = map(int, request.range.removeprefix("bytes=").split("-"))
            found += max(0, min(last + 1, path.stat().st_size) - first)
    return found


def audited(server: S3Server, place: str, request: AuditRequest) -> Outcome:
    """The audit with its repair section, each of whose tasks is another process."""
    location = StoreLocation(place)
    outcome = run_local(AuditRequest("store", location, request.release, request.broker_conf, level=request.level))
    answers = []
    for task in steps_tasks(outcome, location):
        forget()
        answers.append(task.run())
    alter(outcome, repairs=repairs_of(outcome, answers))
    return outcome


@pytest.mark.parametrize("name", ["g04", "g14"])
def test_an_audit_equals_that_of_the_disk_and_fetches_each_byte_once(
    server: S3Server, tmp_path: Path, on_disk: Path, name: str
) -> None:
    (case,) = corpus_tools.cases(name)
    root = case.unpack(tmp_path / "case")
    check(server, root, AuditRequest("", StoreLocation(""), case.release, case.broker_conf))


SIZES = {"segment_bytes": 16 << 20, "queue_file_bytes": 93_740, "index_slots": 78_125, "index_max": 312_500}
CONF = "maxHashSlotNum=78125\nmaxIndexNum=312500\nmappedFileSizeCommitLog=16777216\nmappedFileSizeConsumeQueue=93740\n"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 1 GiB segments with many queues, which each segment reads, 64 times smaller."""
    root = tmp_path_factory.mktemp("sample") / "store"
    write_store(root, SampleStore([1024, 400], topics=10, **SIZES))
    return root


@pytest.mark.parametrize("damaged", [False, True])
def test_many_queues_whose_entries_each_segment_reads_cost_few_requests(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, sample: Path, on_disk: Path, damaged: bool
) -> None:
    monkeypatch.setattr(remote_file, "REQUEST_BYTES", remote_file.REQUEST_BYTES >> 6)
    monkeypatch.setattr(remote_file, "KEPT_BYTES", remote_file.KEPT_BYTES >> 6)
    place = sample / "commitlog" / f"{0:020d}"
    flipped = place.read_bytes()
    try:
        if damaged:
            place.write_bytes(flipped[:5_000_000] + bytes([flipped[5_000_000] ^ 16]) + flipped[5_000_001:])
        outcome = check(server, sample, AuditRequest("", StoreLocation(""), RELEASE, CONF))
    finally:
        place.write_bytes(flipped)
    assert bool(outcome.found.findings) == damaged


def check(server: S3Server, root: Path, request: AuditRequest) -> Outcome:
    uri = server.put_folder(root, "store")
    files = [path for path in root.rglob("*") if path.is_file()]
    here = audited(server, str(root), request)
    forget()
    server.requests.clear()
    there = audited(server, uri, request)
    plans = [
        {**audit_plan(one), "repair": str(one.repairs).replace(str(root), "STORE").replace(uri, "STORE")} for one in (here, there)
    ]
    assert plans[0] == plans[1] and here.found.findings == there.found.findings and not there.incomplete
    assert {request.method for request in server.requests} <= {"GET", "HEAD"}
    others = [request for request in server.reads() if request.key.endswith(".repair.json")]
    assert len(server.reads()) - len(others) <= windows(files) + index_headers(files) + empty(files)
    read = [path for path in files if any(request.key == f"store/{path.relative_to(root)}" for request in server.reads())]
    assert asked_bytes(server, root) == sum(path.stat().st_size for path in read), "each byte once"
    assert len(server.requests) - len(server.reads()) <= 20
    return there


def index_headers(files: Sequence[Path]) -> int:
    """Requests for the heads of index files, which are read before the others are."""
    return sum(path.parent.name == "index" for path in files)


def empty(files: Sequence[Path]) -> int:
    """Requests more for empty objects: no range of such an object can be had, so its length is asked for."""
    return sum(not path.stat().st_size for path in files)


def test_quick_fetches_what_a_recovery_reads(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, sample: Path, on_disk: Path
) -> None:
    monkeypatch.setattr(remote_file, "REQUEST_BYTES", remote_file.REQUEST_BYTES >> 3)
    uri = server.put_folder(sample, "store")
    forget()
    server.requests.clear()
    outcome = run_local(AuditRequest("store", StoreLocation(uri), RELEASE, CONF, level="quick"))
    queues = sum(path.stat().st_size for path in sample.glob("consumequeue/*/*/*"))
    others = 4 << 20  # small files, the edges of the other segment, the head of the index
    assert audit_plan(outcome)["broker"] is not None
    assert asked_bytes(server, sample) <= 1.1 * ((16 << 20) + queues) + others
    assert sum("index" in request.key for request in server.reads()) == 1

"""A store in HDFS is read as one on a disk, never as a mixture of two files, and what goes wrong is a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store_io.audit.audit_store import run_local
from store_io.base.errors import NotAStore, StoreChanged, StoreError, Unreadable
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source import disk_cache, hdfs_client, remote_file
from store_io.source.byte_source import ByteSource, StoreLocation, check_root, open_source, read_beside
from tests.hdfs.small_hdfs import SmallHdfs, user
from tests.support.stores import corpus_tools

pytestmark = pytest.mark.hdfs

SEGMENT = "commitlog/00000000000000000000"


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_file, "REQUEST_BYTES", 1000)
    for module in (remote_file, disk_cache):
        monkeypatch.setattr(module, "GRAIN_BYTES", 100)


def source(hdfs: SmallHdfs) -> ByteSource:
    return open_source(StoreLocation(f"{hdfs.uri}/s"))


def test_ranges_across_blocks(hdfs: SmallHdfs, small_blocks: None) -> None:
    data = os.urandom(6500)
    hdfs.put(f"/s/{SEGMENT}", data)
    hdfs.put("/s/abort", b"")
    with source(hdfs).open(SEGMENT) as file:
        assert file.size == 6500 and file.read(990, 30) == data[990:1020] and file.read(6400, 500) == data[6400:]
        assert file.read(0, 9000) == data and file.read(6500, 1) == b""
    assert source(hdfs).read_small("abort") == b"" and read_beside(StoreLocation(f"{hdfs.uri}/s"), ".conf", 9) is None


def test_the_same_names_as_on_a_disk(hdfs: SmallHdfs, tmp_path: Path) -> None:
    for name in ("commitlog", "consumequeue/%RETRY%g/0", "consumequeue/ a b/1", "index", "config", "_x/.hidden"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "[0-9]*?#\n\u2028ü").write_bytes(b"x")
        (tmp_path / name / "00000000000000000000").write_bytes(b"xyz")
    (tmp_path / "a/b/c/d/e/f/g/h/i/j").mkdir(parents=True)
    there, here = open_source(StoreLocation(hdfs.put_folder(tmp_path, "/s"))), open_source(StoreLocation(str(tmp_path)))
    assert [(e.path, e.kind, e.size) for e in there.names()] == [(e.path, e.kind, e.size) for e in here.names()]
    for entry in here.names():
        listed, own = there.list_tree(entry.path), here.list_tree(entry.path)
        assert [(e.path, e.kind, e.size) for e in listed] == [(e.path, e.kind, e.size) for e in own]
        times = [(e.mtime_ns // 1_000_000) for e in own if e.kind == "file"]
        assert [e.mtime_ns // 1_000_000 for e in listed if e.kind == "file"] == times
        for file in own:
            if file.kind == "file":
                assert there.read_small(file.path) == here.read_small(file.path)
    assert there.list_tree("nothing") == [] and there.list_tree(SEGMENT) == []


def test_a_file_that_is_replaced_is_noticed(hdfs: SmallHdfs, small_blocks: None) -> None:
    hdfs.put(f"/s/{SEGMENT}", bytes(3500))
    found = source(hdfs)
    found.open(SEGMENT).close()
    hdfs.client().delete(f"/s/{SEGMENT}")
    hdfs.put(f"/s/{SEGMENT}", b"\1" * 3500)
    with found.open(SEGMENT) as file, pytest.raises(StoreChanged, match="was replaced or changed while it was read"):
        file.read(1000, 10)
    with source(hdfs).open(SEGMENT) as file:
        assert file.read(0, 3500) == b"\1" * 3500
        hdfs.client().delete(f"/s/{SEGMENT}")
    with pytest.raises(StoreChanged, match=f"{SEGMENT}: is not there any more"):
        source(hdfs).open(SEGMENT)


def test_a_file_that_is_still_written_is_noticed(hdfs: SmallHdfs) -> None:
    writer = hdfs.client().create(f"/s/{SEGMENT}")
    writer.write(bytes(70_000))
    writer.hsync()
    try:
        with (
            pytest.raises((StoreChanged, Unreadable), match=r"something writes to it|still being written"),
            source(hdfs).open(SEGMENT) as file,
        ):
            file.read(0, 70_000)
    finally:
        writer.close()


def test_what_another_user_may_not_see(hdfs: SmallHdfs) -> None:
    for name in ("abort", "commitlog/0", "config/topics.json"):
        hdfs.put(f"/s/{name}", b"x")
    hdfs.client().set_permission("/s/abort", 0o600)
    hdfs.client().set_permission("/s/config", 0o700)
    hdfs.put("/s/consumequeue/T/0/0", b"x")
    hdfs.client().set_permission("/s/consumequeue/T", 0o700)
    with user("stranger"):
        with pytest.raises(Unreadable, match=r"abort: cannot be .*: access is denied .*user=stranger.*HADOOP_USER_NAME"):
            source(hdfs).open("abort")
        with pytest.raises(Unreadable, match="config: cannot be listed: access is denied"):
            source(hdfs).list_tree("config")
        assert [(e.path, e.kind) for e in source(hdfs).list_tree("consumequeue")] == [("consumequeue/T", "unreadable")]


def test_addresses_that_lead_nowhere(hdfs: SmallHdfs) -> None:
    hdfs.put("/s/abort", b"x")
    for uri, said in (
        (f"{hdfs.uri}/none", "nothing is there, not a store directory"),
        (f"{hdfs.uri}/s/abort", "a file is there, not a store directory"),
        ("hdfs://127.0.0.1:1/s", r"no NameNode answers there \(Connection refused.*fs.defaultFS"),
        ("hdfs://no-such-host.invalid:8020/s", "no host of this name is known"),
        ("hdfs://name-service/s", "no name service of the Hadoop configuration.*8020"),
    ):
        with pytest.raises(NotAStore, match=said):
            check_root(uri)


def test_without_a_data_node_and_in_safe_mode(hdfs: SmallHdfs) -> None:
    hdfs.put("/s/abort", b"x")
    assert "ON" in hdfs.admin("-safemode", "enter")
    try:
        assert source(hdfs).read_small("abort") == b"x", "reading needs no leave of it"
        with pytest.raises(StoreError, match="the NameNode is in safe mode"), hdfs_client.failing("f", "cannot be written"):
            hdfs.client().create("/s/new")
    finally:
        assert "OFF" in hdfs.admin("-safemode", "leave")
    hdfs.kill_data_node()
    remote_file._grains_of.cache_clear()
    try:
        with pytest.raises(Unreadable, match="abort: cannot be read: no DataNode that has its blocks can be reached"):
            source(hdfs).open("abort")
    finally:
        hdfs.start_data_node()
    assert source(hdfs).read_small("abort") == b"x"


def test_a_process_that_was_forked_reads_nothing(hdfs: SmallHdfs) -> None:
    hdfs.put("/s/abort", b"x")
    assert source(hdfs).read_small("abort") == b"x"
    remote_file._grains_of.cache_clear()
    child = os.fork()
    if child == 0:
        try:
            source(hdfs).open("abort")
        except Unreadable as problem:
            os._exit(7 if "was forked" in str(problem) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_an_audit_equals_that_of_the_disk(hdfs: SmallHdfs, tmp_path: Path) -> None:
    (case,) = corpus_tools.cases("g04")
    root = case.unpack(tmp_path)
    uri = hdfs.put_folder(root, "/store")
    here, there = (
        run_local(AuditRequest("store", StoreLocation(place), case.release, case.broker_conf)) for place in (str(root), uri)
    )
    assert audit_plan(here) == audit_plan(there) and here.found.findings == there.findings and not there.incomplete

"""A store in S3 is read as one on a disk, with a request for each file and block, and never as a mixture of two objects."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from store_io.base.errors import NotAFile, NotAStore, StoreChanged, StoreError, Unreadable, UsageError
from store_io.source import disk_cache, remote_file, s3_client
from store_io.source.byte_source import ByteSource, StoreLocation, check_root, open_source, read_beside
from store_io.source.remote_file import KeptGrains, RemoteFile
from tests.support.processes.s3_server import BUCKET, Refusal, S3Server

SEGMENT = "commitlog/00000000000000000000"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of 1,000 bytes, grains of 100; what is fetched is kept in memory."""
    monkeypatch.delenv(disk_cache.PLACE, raising=False)
    monkeypatch.setattr(remote_file, "REQUEST_BYTES", 1000)
    for module in (remote_file, disk_cache):
        monkeypatch.setattr(module, "GRAIN_BYTES", 100)


def source(prefix: str = "s") -> ByteSource:
    return open_source(StoreLocation(f"s3://{BUCKET}/{prefix}"))


def kinds(found: ByteSource, name: str) -> dict[str, str]:
    return {entry.path: entry.kind for entry in found.list_tree(name)}


def ranges_of(server: S3Server) -> list[tuple[int, int]]:
    """(first byte, last byte) of each request that reads."""
    asked = (request.range.removeprefix("bytes=").split("-") for request in server.reads())
    return [(int(first), int(last)) for first, last in asked]


def test_reads_ranges_with_one_request_for_each(server: S3Server, small: None, on_disk: Path) -> None:
    data = bytes(i % 251 for i in range(4500))
    server.put(f"s/{SEGMENT}", data)
    server.requests.clear()
    with source().open(SEGMENT) as file:
        assert file.size == 4500 and file.path == SEGMENT
        assert file.read(990, 30) == data[990:1020]
        assert file.read(0, 4500) == data and file.read(4400, 500) == data[4400:] and file.read(4500, 1) == b""
    assert sorted(request.range for request in server.requests) == [
        f"bytes={at}-{min(at + 999, 4499)}" for at in range(0, 5000, 1000)
    ]
    assert {request.method for request in server.requests} == {"GET"}


def test_who_reads_on_has_the_next_ranges_on_their_way(server: S3Server, small: None, on_disk: Path) -> None:
    server.put(f"s/{SEGMENT}", bytes(9000))
    with source().open(SEGMENT) as file:
        file.read(1000, 10)
        assert isinstance(file, RemoteFile) and sorted(file._ahead) == [(20, 30), (30, 40)]
        file.read(7000, 10)
        assert not any(first >= 80 for first, _ in file._ahead), "a jump tells nothing of what comes next"


def test_who_reads_on_without_a_disk_asks_for_more_and_more(server: S3Server, small: None) -> None:
    data = bytes(i % 251 for i in range(80_500))
    server.put(f"s/{SEGMENT}", data)
    server.requests.clear()
    with source().open(SEGMENT) as file:
        assert isinstance(file, RemoteFile)
        for start in range(0, 81_000, 50):
            assert file.read(start, 50) == data[start : start + 50]
            assert len(file._ahead) <= 3, "what is under way is bounded"
    ranges = sorted(ranges_of(server))
    assert [start for start, _ in ranges] == [0, *(end + 1 for _, end in ranges[:-1])], "each byte once"
    assert ranges[-1][1] == 80_499 and len(ranges) <= 81 + 7


def test_a_long_file_that_is_read_through_drives_nothing_out(
    server: S3Server, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_file, "KEPT_BYTES", 20 * (1000 + remote_file.ENTRY_BYTES))
    monkeypatch.setattr(remote_file, "PASSING_BYTES", 60 * (100 + remote_file.ENTRY_BYTES))
    data = bytes(i % 251 for i in range(80_500))
    server.put(f"s/{SEGMENT}", data)
    server.put("s/config/topics.json", b"{}")
    with source().open("config/topics.json") as few, source().open(SEGMENT) as file:
        server.requests.clear()
        for start in range(0, 81_000, 250):
            assert file.read(start, 500) == data[start : start + 500]
            assert remote_file._passing()._bytes <= remote_file.PASSING_BYTES, "also of what is under way"
        server.requests.clear()
        assert few.read(0, 10) == b"{}" and not server.requests
        assert file.read(39_900, 200) == data[39_900:40_100]


def test_of_a_file_that_is_read_sparsely_little_is_fetched(server: S3Server, small: None, on_disk: Path) -> None:
    data = bytes(i % 251 for i in range(4500))
    server.put(f"s/{SEGMENT}", data)
    server.put("s/abort", b"short")
    found = source()
    server.requests.clear()
    with found.open(SEGMENT, sparsely=True) as file:
        for start, size in ((250, 20), (205, 90), (130, 350), (110, 500), (4450, 100), (4499, 1), (4500, 1)):
            assert file.read(start, size) == data[start : start + size]
    ranges = ["0-99", "200-299", "100-199", "300-499", "500-699", "4400-4499"]
    assert [request.range for request in server.requests] == [f"bytes={part}" for part in ranges]
    server.requests.clear()
    with found.open(SEGMENT) as file:
        assert file.size == 4500 and file.read(0, 4500) == data
    ranges = ["700-999", "1000-1999", "2000-2999", "3000-3999", "4000-4399"]
    assert sorted(request.range for request in server.requests) == sorted(f"bytes={part}" for part in ranges), "each byte once"
    server.requests.clear()
    for sparsely in (True, False, True):
        with found.open("abort", sparsely=sparsely) as file:
            assert file.read(0, 10) == b"short"
    assert len(server.requests) == 1


def test_an_empty_object_is_an_empty_file(server: S3Server) -> None:
    server.put("s/abort", b"")
    with source().open("abort") as file:
        assert file.size == 0 and file.read(0, 10) == b""


def test_an_object_that_is_replaced_while_it_is_read_is_noticed(server: S3Server, small: None) -> None:
    server.put(f"s/{SEGMENT}", bytes(3000))
    with source().open(SEGMENT) as file:
        file.read(0, 10)
        server.put(f"s/{SEGMENT}", bytes([1]) * 3000)
        with pytest.raises(StoreChanged, match=f"{SEGMENT}: was replaced by another object while it was read"):
            file.read(1500, 10)


def test_an_object_that_is_replaced_within_a_second_has_another_time(server: S3Server) -> None:
    times = []
    for data in (b"one", b"two"):
        server.put(f"s/{SEGMENT}", data)
        times += [entry.mtime_ns for entry in source().list_tree("commitlog")]
    assert times[0] != times[1]


@pytest.mark.parametrize("sent", ["no If-Match", "no ETag"])
def test_a_server_without_etags_is_no_danger(server: S3Server, small: None, monkeypatch: pytest.MonkeyPatch, sent: str) -> None:
    server.put(f"s/{SEGMENT}", bytes(3000))
    client = s3_client.client()
    asked = client.get_object

    def answer(**words: str) -> dict[str, object]:
        found = dict(asked(**{name: word for name, word in words.items() if name != "IfMatch"}))
        return found if sent == "no If-Match" else {**found, "ETag": ""}

    monkeypatch.setattr(client, "get_object", answer)
    if sent == "no ETag":
        with pytest.raises(Unreadable, match="the server gives no ETag"):
            source().open(SEGMENT)
        return
    with source().open(SEGMENT) as file:
        server.put(f"s/{SEGMENT}", bytes([1]) * 3000)
        with pytest.raises(StoreChanged, match="was replaced by another object"):
            file.read(1500, 10)


def test_answers_that_are_none_of_s3_are_sentences(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.refuse = lambda request: Refusal("404 Not Found", "NotFound")
    with pytest.raises(StoreError, match=r"cannot be read|is not there any more"):
        source().names()
    server.refuse = lambda request: None
    client = s3_client.client()
    page = {"KeyCount": 0, "IsTruncated": True, "NextContinuationToken": "again"}
    for answer, said in (
        ({}, "no S3 server"),
        (page, "says that there is more"),
        ({**page, "NextContinuationToken": ""}, "more"),
    ):
        monkeypatch.setattr(client, "list_objects_v2", lambda answer=answer, **asked: answer)
        with pytest.raises(Unreadable, match=said):
            source().names()
    whole = {"ContentLength": 1 << 40, "ETag": "e", "Body": None}
    for more in ({}, {"ContentRange": "bytes 0-9/*"}, {"ContentRange": "bytes 5-9/100"}):
        monkeypatch.setattr(client, "get_object", lambda more=more, **asked: {**whole, **more})
        with pytest.raises(Unreadable, match="does not answer with the range"):
            source().open(SEGMENT)


def test_a_request_that_stays_without_answer_is_not_tried_twice_over(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def stalled(**asked: str) -> None:
        tried.append(asked)
        raise ReadTimeoutError(endpoint_url="http://user:secret@host")

    monkeypatch.setattr(s3_client.client(), "get_object", stalled)
    with pytest.raises(Unreadable, match="the server does not answer") as problem:
        source().open(SEGMENT)
    assert len(tried) == 1 and "secret" not in str(problem.value)


def test_what_is_kept_is_asked_for_again_by_a_later_location(server: S3Server) -> None:
    server.put("s/checkpoint", b"old")
    before = source()
    assert before.read_small("checkpoint") == b"old"
    server.put("s/checkpoint", b"new")
    assert before.read_small("checkpoint") == b"old", "the same audit sees the same bytes"
    assert source().read_small("checkpoint") == b"new"


def test_an_absent_object_and_an_absent_store_are_sentences(server: S3Server) -> None:
    with pytest.raises(StoreChanged, match="commitlog/none: is not there any more"):
        source().open("commitlog/none")
    with pytest.raises(NotAStore, match=f"s3://{BUCKET}/s: nothing is there, not a store directory"):
        check_root(f"s3://{BUCKET}/s")
    server.put("s", b"x")
    with pytest.raises(NotAStore, match="a file is there, not a store directory"):
        check_root(f"s3://{BUCKET}/s")
    with pytest.raises(NotAStore, match="no bucket of this name"):
        check_root("s3://no-such-bucket/s")
    for uri in ("s3:///s", "s3://key:secret@bucket/s", "s3://key:sec/ret@bucket/s"):
        with pytest.raises(UsageError, match="is s3://BUCKET/FOLDER, without a login") as problem:
            check_root(uri)
        assert "sec" not in str(problem.value)
    for uri in ("s3://bucket/a//b", "s3://bucket/../x", "s3://bucket/a?b", "s3://bucket/a#b"):
        with pytest.raises(UsageError, match="a folder in S3 has a name without"):
            check_root(uri)


def test_lists_folders_and_files_as_a_disk_does(server: S3Server) -> None:
    for key in ("commitlog/a", "consumequeue/T/0/b", "abort", "empty/"):
        server.put(f"s/{key}", b"12")
    server.put("s-other/x", b"")
    names = {entry.path: (entry.kind, entry.size) for entry in source().names()}
    assert names == {
        "abort": ("file", 2), "commitlog": ("directory", 0), "consumequeue": ("directory", 0), "empty": ("directory", 0)
    }  # fmt: skip
    tree = kinds(source(), "consumequeue")
    assert tree == {"consumequeue/T": "directory", "consumequeue/T/0": "directory", "consumequeue/T/0/b": "file"}
    assert all(entry.mtime_ns > 0 for entry in source().list_tree("commitlog"))
    assert kinds(source(), "index") == {}


def test_a_listing_of_several_pages_is_whole(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        server.put(f"s/index/{number}", b"")
    whole = s3_client.client()
    pages = whole.list_objects_v2
    monkeypatch.setattr(whole, "list_objects_v2", lambda **asked: pages(**asked, MaxKeys=3))
    assert len(source().list_tree("index")) == 7


def test_keys_that_are_no_paths_are_never_opened(server: S3Server) -> None:
    for key in ("a//b", "../up", "x/./y", "c\x01d", "%41", "ü", "/", "../", "z/./"):
        server.put(f"s/commitlog/{key}", b"x")
    found = kinds(source(), "commitlog")
    assert "commitlog/.." not in found and found["commitlog/../"] == found["commitlog/z/./"] == "special"
    assert found["commitlog/a//b"] == found["commitlog/../up"] == found["commitlog/x/./y"] == "special"
    assert found["commitlog/c\x01d"] == found["commitlog/%41"] == found["commitlog/ü"] == "file"
    assert source().read_small("commitlog/%41") == source().read_small("commitlog/ü") == b"x"
    with pytest.raises(NotAFile, match="no path inside a store"):
        source().open("commitlog/../up")


def test_a_name_that_is_an_object_and_a_folder_is_refused(server: S3Server) -> None:
    server.put("s/commitlog/0", b"x")
    server.put("s/commitlog/0/1", b"x")
    with pytest.raises(Unreadable, match=f"s3://{BUCKET}/s/commitlog/0: an object and a folder have this name"):
        source().list_tree("commitlog")


def test_reads_what_lies_beside_a_store(server: S3Server) -> None:
    server.put("s.repair.json", b"{}")
    assert read_beside(StoreLocation(f"s3://{BUCKET}/s"), ".repair.json", 10) == b"{}"
    assert read_beside(StoreLocation(f"s3://{BUCKET}/s"), ".nothing", 10) is None


def test_a_server_that_throttles_is_asked_again(server: S3Server) -> None:
    server.put("s/abort", b"x")
    left = iter([True, True])
    server.refuse = lambda request: Refusal("503 Slow Down", "SlowDown") if next(left, False) else None
    server.requests.clear()
    assert source().read_small("abort") == b"x"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (Refusal("403 Forbidden", "AccessDenied"), "access is denied .AccessDenied: it says so.; these credentials need s3:Li"),
        (
            Refusal("403 Forbidden", "InvalidAccessKeyId"),
            "the server does not take these credentials .*; set AWS_ACCESS_KEY_ID and",
        ),
        (
            Refusal("400 Bad Request", "AuthorizationHeaderMalformed"),
            "the bucket is in another region .*; set AWS_REGION to the region",
        ),
    ],
)
def test_a_refusal_says_what_to_set(server: S3Server, refusal: Refusal, said: str) -> None:
    server.refuse = lambda request: refusal
    with pytest.raises(Unreadable, match=f"abort: cannot be read: {said}"):
        source().open("abort")
    with pytest.raises(Unreadable, match=said):
        check_root(f"s3://{BUCKET}/s")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("PermanentRedirect", "the bucket is in another region .*; set AWS_REGION to the region of the bucket"),
        ("", "what answers there is no S3 server: it leads elsewhere .and does not say where.; set AWS_ENDPOINT_URL to"),
    ],
)
def test_a_server_that_leads_elsewhere_again_and_again(server: S3Server, code: str, said: str) -> None:
    server.refuse = lambda request: Refusal("301 Moved Permanently", code)
    with pytest.raises(Unreadable, match=f"abort: cannot be read: {said}"):
        source().open("abort")
    with pytest.raises(Unreadable, match=f"s3://{BUCKET}/s: cannot be read: {said}"):
        check_root(f"s3://{BUCKET}/s")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://u:secret@other:9000/x?X-Amz-Signature=secret", "https://other:9000"),
        (f"http://u:{'secret' * 100}@other/", "http://other"),
        ("http://u: secret@other/", "http://other"),
        ("http://[secret", ""),
        ("secret", ""),
    ],
)
def test_of_an_address_to_which_a_server_leads_its_server_alone_is_shown(address: str, shown: str) -> None:
    assert s3_client._server_of(address) == shown


def test_a_refusal_to_write_names_the_rights_to_write(server: S3Server) -> None:
    server.refuse = lambda request: Refusal("403 Forbidden", "AccessDenied")
    for ask in (s3_client.client().create_multipart_upload, s3_client.client().put_object):
        with pytest.raises(ClientError) as problem:
            ask(Bucket=BUCKET, Key="k")
        assert "these credentials need s3:PutObject and s3:DeleteObject there" in s3_client.reason(problem.value)


def test_grains_that_were_not_used_for_longest_make_room() -> None:
    kept = KeptGrains(10 + 2 * remote_file.ENTRY_BYTES)
    kept.put((("b", "k"), "e", 0), bytes(4))
    kept.put((("b", "k"), "e", 1), bytes(4))
    assert kept.get((("b", "k"), "e", 0)) == bytes(4) and kept._bytes == 8 + 2 * remote_file.ENTRY_BYTES
    kept.put((("b", "k"), "e", 2), bytes(4))
    assert kept.get((("b", "k"), "e", 1)) is None and kept.get((("b", "k"), "e", 0)) is not None

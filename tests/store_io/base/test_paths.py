"""One answer, for the command line and for the reader of stores, to what is a URI and what stays below a folder."""

from __future__ import annotations

import pytest

from jobs.cli.argument_places import absolute
from jobs.tables.table_files import hadoop_path
from store_io.base.errors import StoreError, UsageError
from store_io.base.paths import is_inner_path, is_uri, name_node_and_path
from store_io.source.byte_source import StoreLocation, local_path, open_source


@pytest.mark.parametrize("text", ["s3://bucket/a", "hdfs:/a", "s3a:/b", "FILE:/x", "file:/x", "file:///x"])
def test_a_uri(text: str) -> None:
    assert is_uri(text)


@pytest.mark.parametrize("text", ["/a/b", "a", "", "c:/a", "c://a", "s3:a", "/s3://a", "1s:/a"])
def test_a_local_path(text: str) -> None:
    assert not is_uri(text)
    assert local_path(text) == text


@pytest.mark.parametrize("text", ["gopher:/a", "nothing:/b"])
def test_an_address_that_the_command_line_leaves_alone_is_no_local_path_to_the_reader(text: str) -> None:
    assert absolute(text) == text and local_path(text) is None
    with pytest.raises(StoreError, match="not a URI that can be read"):
        open_source(StoreLocation(text))


def test_a_file_uri_is_decoded_and_a_tables_address_is_not() -> None:
    assert local_path("FILE:/x%20y") == absolute("FILE:/x%20y") == "/x y"
    assert hadoop_path("file:/x%20y") == "/x%20y"


def test_what_stays_below_its_folder() -> None:
    assert all(map(is_inner_path, ["a", "a/b", "commitlog[2]/0", "..a", "a/...", " "]))
    assert not any(map(is_inner_path, ["", ".", "..", "/a", "a/", "a//b", "a/../b", "./a", "a\0b"]))


def test_addresses_in_hdfs() -> None:
    assert name_node_and_path("hdfs://Host:8020/a b/%20/") == ("host:8020", "/a b/%20")
    assert name_node_and_path("hdfs://service") == ("service", "/") and name_node_and_path("hdfs://[::1]:1/a") == (
        "[::1]:1",
        "/a",
    )
    for wrong in ("hdfs://user:secret@host/a", "hdfs:///a", "hdfs:/a", "hdfs://h:p/a"):
        with pytest.raises(UsageError, match="hdfs://HOST:PORT/FOLDER") as raised:
            name_node_and_path(wrong)
        assert "secret" not in str(raised.value)
    for wrong in ("hdfs://h/a//b", "hdfs://h/a/../b", "hdfs://h/a?b", "hdfs://h/a\nb"):
        with pytest.raises(UsageError, match="a folder in HDFS has a name without"):
            name_node_and_path(wrong)

"""What stores are called in rows of this version and of earlier ones, and what people read in its place."""

from __future__ import annotations

import pytest

from jobs.cli.stores import StoreArgument, with_unique_names
from jobs.report.texts.run_words import short_names
from jobs.tables.names_in_tables import StoredRun, StoreNames
from jobs.tables.past_runs import chosen_store
from store_io.base.errors import StoreError


def row(run_id: str, store: str, location: str | None, store_from: str | None = None) -> StoredRun:
    return StoredRun(run_id, store, 0, None, store_from, location)


def test_a_store_is_called_by_the_name_that_a_person_gave_it_else_by_its_place() -> None:
    paths = ["/a/store", "/b/store", "/b/store", "s3://bucket/store", "/c/\udcff"]
    stores = [*(StoreArgument(path.rpartition("/")[2], path) for path in paths), StoreArgument("broker-a", "/d", named=True)]
    keys = [store.key for store in with_unique_names([*stores, StoreArgument("broker-a", "/e", named=True)])]
    assert keys == ["/a/store", "/b/store", "/b/store#2", "s3://bucket/store", "/c/\\udcff", "broker-a", "/e"]


def test_rows_of_earlier_versions_count_to_the_place_of_their_copy() -> None:
    rows = [
        row("1", "store", "/a/store"), row("2", "store", "/b/store"), row("2", "store-2", "/a/store"),
        row("3", "broker-a", "/nights/3"), row("1", "known", "/x/known"), row("9", "known", "/y/known", "name"),
        row("9", "/a/store", "/a/store", "location"), row("1", "old", None),
    ]  # fmt: skip
    names = StoreNames(rows)
    assert [found.store for found in names.named(rows)] == [
        "/a/store", "/b/store", "/a/store", "broker-a", "known", "known", "/a/store", "old",
    ]  # fmt: skip


def test_people_read_as_much_of_a_place_as_tells_it_from_others() -> None:
    shown = short_names(["/copies/a/store", "/copies/b/store", "/copies/broker-a", "plain"])
    assert [*shown.values()] == ["a/store", "b/store", "broker-a", "plain"]
    assert short_names(["broker-a", "/copies/broker-a"])["/copies/broker-a"] == "copies/broker-a"


def test_a_store_is_chosen_by_the_end_of_its_place() -> None:
    known = ["/copies/a/store", "/copies/b/store", "broker-c"]
    assert [chosen_store(known, given, "t") for given in (None, "broker-c", "/copies/a/store", "b/store")] == [
        None, "broker-c", "/copies/a/store", "/copies/b/store",
    ]  # fmt: skip
    with pytest.raises(StoreError, match=r"t has 2 stores in such a place: /copies/a/store, /copies/b/store"):
        chosen_store(known, "store", "t")
    with pytest.raises(StoreError, match=r"not in t \(did you mean broker-c\?\)"):
        chosen_store(known, "broker-b", "t")

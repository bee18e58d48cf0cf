"""Who may answer although a read has failed: all places that collect failed reads, and all that do without a read."""

from __future__ import annotations

import ast

import pytest

from tests import ROOT
from tests.support.texts.own_code import forget, nodes_of, tree

# Each of these tells what it has collected, or raises it. A place that only collects would hide that a read has failed.
COLLECTORS = {
    ("store_io/kinds/config/texts/table_forms.py", "failed_reads"),  # raised if the form is needed
    ("store_io/base/failed_reads.py", "failed_reads"),  # every_read raises; can_do_without is listed below
    ("store_io/base/tasks.py", "failed_reads"),  # a PartlyRead in the place of the task's result
    ("store_io/audit/audit_store.py", "failed_reads"),  # a reason why the audit is incomplete
    ("jobs/audit/one_store.py", "failed_reads"),  # the store is audited once more, by the driver
    ("store_io/repair/repair_store.py", "every_read"),  # a repair, a dry run, what an audit works out
    ("store_io/repair/repair_copy.py", "every_read"),  # what is copied, and whether it is worth it
    ("jobs/repair/repair_request.py", "every_read"),  # what is asked for
    ("jobs/commands/after_start.py", "every_read"),  # the comparison, which is tried again if a file went meanwhile
    ("jobs/commands/rescue.py", "every_read"),  # the first look, and the ways
    ("store_io/base/failed_reads.py", "every_read"),  # with_every_read raises
    ("store_io/messages/open_store.py", "every_read"),  # the settings that a store's own files show
    ("jobs/sources/store_source.py", "every_read"),  # what a data source knows before its tasks
    ("jobs/sources/store_source.py", "with_every_read"),  # the rows of a data source's task
    ("jobs/entry.py", "every_read"),  # every command but the audit
}
# (module, why its answer is the same without the read)
WITHOUT = {
    ("jobs/tasks/threads_or_spark.py", "the sizes of what is listed decide whether Spark is worth its start"),
    ("store_io/messages/choice/by_pieces.py", "the file's size is taken then"),
    ("store_io/messages/choice/by_queues.py", "all segments are read then"),
    ("store_io/messages/choice/by_tables.py", "the segment is read then"),
    ("store_io/messages/message_search.py", "the segment is decoded to its end then"),
    ("store_io/source/store_dir.py", "a folder below one that is no store: it is only named"),
    ("store_io/messages/open_store.py", "reading a part later raises for what could not be listed"),
    ("store_io/messages/open_store.py", "the number of rows is an estimate, which plans alone ask for"),
}
# (module, error whose sentence is told in another way)
UNLESS = {
    ("store_io/base/failed_reads.py", "Denied"),  # unless_denied
    ("store_io/kinds/config/texts/table_forms.py", "DatabaseUnread"),  # a form of a table that no start takes
}
DENIED = {"store_io/model/premises.py", "store_io/outcome/plan_inputs.py"}  # files of other releases, or of nobody
NOTING = {"note", "noting"}
READERS = ("store_io/source/byte_file.py", "store_io/source/byte_source.py", "store_io/rocksdb/database.py")


def teardown_module() -> None:
    forget()


def calls(name: str) -> set[tuple[str, ast.Call]]:
    """(module, call) of all calls of a function of that name in the product."""
    found = set()
    for package in ("store_io", "jobs"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in nodes_of(tree(path)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                    found.add((path.relative_to(ROOT).as_posix(), node))
    return found


@pytest.mark.parametrize("name", ["failed_reads", "every_read", "with_every_read"])
def test_who_collects_failed_reads(name: str) -> None:
    assert {(path, name) for path, _ in calls(name)} == {one for one in COLLECTORS if one[1] == name}


def test_who_does_without_a_read_says_why() -> None:
    found = {(path, str(ast.literal_eval(call.args[0]))) for path, call in calls("can_do_without")}
    assert found == WITHOUT


def test_who_may_be_denied_a_file() -> None:
    assert {path for path, _ in calls("unless_denied")} == DENIED


def test_who_tells_of_a_failed_read_in_another_way() -> None:
    assert {(path, ast.unparse(call.args[0])) for path, call in calls("noted_unless")} == UNLESS


def test_reads_are_noted_where_all_of_them_go_through() -> None:
    assert {path for name in NOTING for path, _ in calls(name)} == {*READERS, "store_io/base/failed_reads.py"}

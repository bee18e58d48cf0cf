"""Values in little memory: as a list and as a map they are what was put in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from jobs.report.files.json_text import document
from store_io.base import packed as subject
from store_io.base.packed import (
    PackedList,
    PackedMap,
    PackedValue,
    PackedWhenMany,
    in_order,
    joined,
    keys_of,
    opened,
    packed,
    weight_of_row,
)
from store_io.base.tasks import PackedTask, run_task

ROWS = [{"topic": f"T{n}", "queue_id": n, "files": [{"file": "f", "size": n}] if n % 3 else []} for n in range(3000)]


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 3000])
def test_many_values_are_packed_and_few_are_a_list(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "FEW", 100)
    made = packed(iter(ROWS[:count]))
    assert isinstance(made, PackedList) == (count > 100)
    assert made == ROWS[:count] and list(made) == ROWS[:count] and len(made) == count and bool(made) == bool(count)
    assert made != [*ROWS[:count], {}] and (not count or made != [*ROWS[: count - 1], {}])


def test_a_packed_list_is_read_by_place() -> None:
    made = PackedList(ROWS)
    assert made[0] == ROWS[0] and made[1024] == ROWS[1024] and made[-1] == ROWS[-1] and made[5:2000:700] == ROWS[5:2000:700]
    for place in (3000, -3001):
        with pytest.raises(IndexError):
            made[place]
    assert document({"queues": made, "none": PackedList([])}) == document({"queues": ROWS, "none": []})


@pytest.mark.parametrize("count", [0, 100, 101, 102, 3000])
def test_a_list_that_grows_is_packed_once_it_is_long(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "FEW", 100)
    made: PackedList[dict[str, Any]] = PackedList()
    made += ROWS[: count // 2]
    made += iter(ROWS[count // 2 : count])
    assert made == ROWS[:count] and [*made] == ROWS[:count] and len(made) == count and bool(made) == bool(count)
    assert made[count // 3 :] == ROWS[count // 3 : count] and made[5:1:-2] == ROWS[:count][5:1:-2]
    assert made != [*ROWS[:count], {}] and len(made._newest) <= 100
    if count:
        assert made[0] == ROWS[0] and made[-1] == ROWS[count - 1] == made[count - 1]
    for place in (count, -count - 1):
        with pytest.raises(IndexError):
            made[place]


def test_lists_of_many_things_are_packed_from_the_one_on_with_which_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "FEW", 100)
    held: PackedWhenMany[dict[str, Any]] = PackedWhenMany()
    lists = [held.of(ROWS[at : at + size]) for at, size in ((0, 60), (60, 40), (100, 60), (160, 2), (162, 0))]
    assert [isinstance(one, PackedList) for one in lists] == [False, False, True, False, False]
    assert [row for one in lists for row in one] == ROWS[:162]


def test_a_map_of_parts_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "FEW", 60)
    made: PackedMap[tuple[str, int], list[int]] = PackedMap()
    wanted = {("T", n): [n] for n in range(1000)}
    for start in (600, 0, 900, 100, 300, 200, 800, 400, 700, 500):
        made.add({("T", n): [n] for n in range(start, start + 100)})
        assert len(made) == sum(1 for _ in made)
    assert dict(made) == wanted and list(made) == sorted(wanted)
    assert all(made[key] == value for key, value in wanted.items())
    assert ("T", 1000) not in made and ("A", 0) not in made and made.get(("T", -1)) is None
    made.add({("T", n): [-n] for n in range(100, 200)})  # read again
    assert len(made) == 1000 and made["T", 150] == [-150] and made["T", 250] == [250]


def test_a_result_waits_until_it_is_opened() -> None:
    import pickle

    assert opened(PackedValue(pickle.dumps(ROWS))) == ROWS and opened(ROWS) is ROWS


@pytest.mark.parametrize("few", [3, 1000])
def test_a_map_packs_what_close_leaves_of_a_value(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "FEW", few)
    monkeypatch.setattr(subject, "_PART", 4)
    shared = object()  # which cannot be packed
    values = {f"k{n:02}": (shared, n) for n in range(30)}
    made = PackedMap.of(values.items(), lambda value: value[1], lambda key, number: (shared, number))
    assert dict(made) == values and made["k17"] == (shared, 17) and len(made) == 30
    later = made.of_same([("k05", (shared, -5)), ("k99", (shared, 99))])
    assert dict(joined(made, later)) == {**values, **dict(later)} and joined({}, later) is later
    assert list(keys_of(made, later, {"a": 0})) == ["a", *sorted({*values, *later})]
    made.open_all()
    assert dict(made) == values


@pytest.mark.parametrize("count", [0, 99, 100, 101, 1000])
def test_rows_are_put_in_order_a_part_at_a_time(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "FEW_INSIDE", 100)
    rows = [(str(n * 7919 % 251), n) for n in range(count)]
    assert list(in_order(iter(rows))) == sorted(rows)


def test_what_changes_in_a_pass_is_packed_again_and_a_copy_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_PART", 4)
    made = PackedMap.of(((f"k{n:02}", [n]) for n in range(30)), packs=True)
    before = made.copy()
    for place, value in enumerate(made.changing()):
        assert made[f"k{29 - place:02}"] is not None  # opens other parts
        value.append(0)
    assert [*made.values()] == [[n, 0] for n in range(30)] and [*before.values()] == [[n] for n in range(30)]


@pytest.mark.parametrize("inside", [1, 1000])
def test_values_are_put_into_a_packed_map_wherever_they_belong(inside: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_PART", 4)
    monkeypatch.setattr(subject, "_INSIDE", inside)
    made: PackedMap[str, list[int]] = PackedMap(weigh=len, packs=True)
    wanted: dict[str, list[int]] = {}
    for values in ([50, 20, 30], [], [10], range(0, 100, 9), [99, 98, 5, 20], range(20, 60), [0]):
        fresh = {f"k{n:02}": [n, len(wanted)] for n in values}
        before, earlier = made.copy(), dict(wanted)
        made.put(fresh)
        wanted |= fresh
        assert dict(made) == wanted and list(made) == sorted(wanted) and len(made) == len(wanted) and dict(before) == earlier
        assert all(made[key] == value for key, value in wanted.items())
        assert max((len(part) for part in made.parts()), default=0) <= (1 if inside == 1 else 4)


def test_a_task_waits_until_it_runs() -> None:
    import pickle

    whole = _Task(store=3, bytes_to_read=7, paths=("a", "b"))
    waiting = PackedTask.of(whole)
    assert (waiting.store, waiting.not_after, waiting.bytes_to_read, waiting.paths) == (3, 0, 7, ("a", "b"))
    assert waiting.packed == PackedTask.of(whole).packed != PackedTask.of(replace(whole, store=4)).packed
    assert waiting.open() == pickle.loads(pickle.dumps(waiting)) == whole and run_task(waiting) == "done"


def test_what_holds_much_is_packed_where_it_is_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five queues of a thousand files each are as much as five thousand of one."""
    monkeypatch.setattr(subject, "FEW_INSIDE", 100)
    monkeypatch.setattr(subject, "_INSIDE", 20)
    rows = [{"topic": f"T{n}", "files": list(range(n))} for n in range(30)]
    made = packed(iter(rows), weight_of_row)
    assert (
        isinstance(made, PackedList) and made == rows and [made[n] for n in (29, 0, 17, -2)] == [rows[n] for n in (29, 0, 17, 28)]
    )
    assert len(made._parts) > 10 and isinstance(packed(rows[:14], weight_of_row), list)
    found = PackedMap.of(((row["topic"], row["files"]) for row in rows[10:]), weigh=len)
    assert found.packs and dict(found) == {row["topic"]: row["files"] for row in rows[10:]}
    assert max(len(part) for part in found.parts()) <= 2
    assert not PackedMap.of(((row["topic"], row["files"]) for row in rows[10:14]), weigh=len).packs


@dataclass(frozen=True)
class _Task:
    store: int
    bytes_to_read: int
    paths: tuple[str, ...]
    not_after: float = 0

    def run(self) -> str:
        return "done"

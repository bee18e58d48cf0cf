"""What a copy lacks of its group, as a verdict."""

from __future__ import annotations

from schemas.replicas import NO_GROUP, FirstDifference, Group, GroupCopy, Lacked, Pair, Relation
from store_io.outcome.safety import as_master


def group(lacks: dict[str, dict[str, int]], *, best: str | None = None, diverged: tuple[str, str] | None = None) -> Group:
    """lacks: store -> holder -> messages."""
    pairs = [Pair(*diverged, Relation.DIVERGED, first_difference=FirstDifference(77, 77))] if diverged is not None else []
    return Group(
        best=best,
        copies=tuple(GroupCopy(store, lacks=max(held.values(), default=0)) for store, held in lacks.items()),
        lacks=tuple(Lacked(store, holder, number) for store, held in lacks.items() for holder, number in held.items()),
        pairs=tuple(pairs),
    )


def test_a_copy_that_lacks_nothing_and_a_store_without_a_group_have_none() -> None:
    assert as_master(NO_GROUP, "a") is None
    assert as_master(group({"a": {}, "b": {"a": 2}}), "a") is None


def test_who_holds_most_of_what_is_lacking() -> None:
    found = as_master(group({"a": {"c": 2, "b": 5}, "b": {}, "c": {}}), "a")
    assert found is not None and (found.lacks, found.holder, found.holds, found.best) == (5, "b", 5, False)
    assert found.headline() == "Do not start this copy as master: it lacks 5 messages of its group"
    assert found.clause() == "b holds 5 messages that this copy lacks"


def test_the_best_copy_is_only_not_to_be_started_yet() -> None:
    found = as_master(group({"a": {"b": 1}, "b": {"a": 9}}, best="a"), "a")
    assert found is not None and found.headline().startswith("Do not start this copy as master yet: it lacks 1 message of")
    assert found.headline().endswith("though no other copy would lose fewer")


def test_copies_that_diverged_are_named_with_the_place() -> None:
    found = as_master(group({"a": {"b": 3}, "b": {"a": 4}}, diverged=("b", "a")), "a")
    assert found is not None and (found.diverged_from, found.diverged_at, found.other_lacks) == ("b", 77, 4)
    assert "it and b each hold messages that the other lacks" in found.headline()
    assert "differ from physical offset 77 on, where this copy holds 4 messages that b lacks" in found.clause()

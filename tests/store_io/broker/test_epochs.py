"""What an election does to the epochs, and where two replicas are the same (controller.md 4, 5)."""

from __future__ import annotations

from store_io.broker.epochs import Epoch, as_cached, consistent_point, elect

ONE, TWO, THREE = Epoch(1, 0), Epoch(2, 400), Epoch(3, 900)


def test_an_election_adds_the_next_epoch_at_the_end() -> None:
    found = elect((ONE, TWO), 900, None)
    assert (found.epoch, found.recorded, found.removed) == (THREE, True, ())
    assert elect((), 0, None).epoch == ONE and elect((), 0, None).recorded


def test_it_is_not_recorded_where_the_last_epoch_begins_no_earlier() -> None:
    assert not elect((ONE, TWO), 400, None).recorded  # two elections without a message between
    assert not elect((ONE, TWO), 300, None).recorded  # an epoch beyond the end stays where nothing was checked


def test_what_begins_at_or_after_the_checked_end_is_removed() -> None:
    found = elect((ONE, TWO, THREE), 400, 400)
    assert (found.epoch, found.recorded, found.removed) == (Epoch(4, 400), True, (TWO, THREE))


def test_the_consistent_point_is_the_smaller_end_of_the_highest_common_epoch() -> None:
    assert consistent_point((ONE, TWO), 950, (ONE, TWO), 700) == 700
    assert consistent_point((ONE, TWO), 950, (ONE, Epoch(2, 500)), 700) == 400
    assert consistent_point((ONE, TWO, THREE), 1000, (ONE, TWO), 950) == 900
    assert consistent_point((ONE,), 950, (TWO,), 700) is None
    assert consistent_point((), 950, (), 700) is None


def test_the_last_line_of_an_epoch_counts() -> None:
    assert as_cached([THREE, ONE, Epoch(3, 5)]) == (ONE, Epoch(3, 5))


def test_an_election_takes_no_longer_than_its_epochs_are_many() -> None:
    epochs = tuple(Epoch(number, number) for number in range(100_000))  # by comparing each with each it would take half an hour
    assert len(elect(epochs, 50_000, 50_000).removed) == 50_000

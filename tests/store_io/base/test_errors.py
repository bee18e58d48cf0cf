"""What stops an audit: each class has the exit code of the contract and says what it means."""

from __future__ import annotations

import pytest

from store_io.base import errors
from store_io.base.errors import (
    Denied,
    NotAFile,
    NotAStore,
    RefusedSetting,
    StoreChanged,
    StoreError,
    UnfitDonor,
    Unreached,
    Unreadable,
    UsageError,
)

CODES = {
    StoreError: 3, UsageError: 2, RefusedSetting: 2, NotAStore: 3, NotAFile: 3, Unreadable: 3, Denied: 3, StoreChanged: 3,
    UnfitDonor: 3, Unreached: 3,
}  # fmt: skip


@pytest.mark.parametrize(("kind", "code"), CODES.items())
def test_each_has_the_contracts_exit_code(kind: type[StoreError], code: int) -> None:
    with pytest.raises(StoreError, match="a sentence") as raised:
        raise kind("a sentence")
    assert raised.value.exit_code == code
    assert kind.__doc__


def test_all_are_tested() -> None:
    found = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)}
    assert found == CODES.keys()

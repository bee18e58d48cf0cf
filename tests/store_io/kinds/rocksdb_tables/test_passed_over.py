"""Entries of transactions that a broker passes over."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.kinds.rocksdb_tables.transaction_table import is_passed_over
from tests.support.answers import product
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.stores.rocksdb_tables import HALF, TableStore, half_pair


@pytest.mark.parametrize(("text", "over"), [(b"@T@U", False), (b"@T@U@", False), (b"@T@U@V", True), (b"@T@", True)])
def test_what_a_broker_can_part_again(text: bytes, over: bool) -> None:
    assert is_passed_over(bytes(8) + text) is over


def test_a_unique_key_with_such_a_sign_is_a_note(tmp_path: Path) -> None:
    builder = StoreBuilder("5.5.0", Sizes(segment=1 << 14))
    more = [(("REAL_TOPIC", "pay"), ("REAL_QID", "0"), ("__transactionId__", unique)) for unique in ("A", "B@x", "C@y")]
    halves = [builder.put(Message(HALF, body=b"half", uniq=properties[2][1], properties=properties)) for properties in more]
    made = TableStore(builder.write(tmp_path / "store"), halves, {}, dict(map(half_pair, halves)), None, halves[-1].at).write()
    audit = product.audit(made.root, "5.5.0", made.conf.replace("indexRocksDBEnable=true", ""))
    (found,) = audit.findings
    assert (found.code, found.severity, found.count, found.phy_offset) == ("transaction_entry_missing", "note", 2, halves[1].at)
    assert audit.outcome.exit_code == 0

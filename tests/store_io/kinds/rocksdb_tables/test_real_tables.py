"""A real store with index, timers and transactions in RocksDB, killed: what the audit says, against what the release then did."""

from __future__ import annotations

from pathlib import Path

from store_io.kinds.rocksdb_tables.table_kind import TABLES
from tests.support.answers import product
from tests.support.stores.corpus_tools import of_kind


def test_what_a_start_delivers_again_and_puts(tmp_path: Path) -> None:
    (case,) = of_kind("tables")
    audit = product.audit(case.unpack(tmp_path), case.release, case.broker_conf)
    assert audit.above_note == [] and not audit.incomplete and "rocksdbstore" not in audit.outcome.covered.not_judged
    before, after, entries = (case.expected[name] for name in ("deliveredBefore", "deliveredAfter", "entriesAfterStop"))
    again = [body for body, times in before.items() if after[body] > times]
    found = {f.code: f.count for f in audit.findings if f.file == "rocksdbstore"}
    assert (
        found["timer_messages_again"] == len(again) == audit.outcome.holds.timers.fates.again.messages
        and after.keys() == before.keys()
    )
    # Each delivered copy has an index entry too, and two marks and what the start delivers again come after the audit.
    table = audit.audit.evidence[TABLES].results
    assert table.log is not None and table.index is not None
    delivered = sum(after.values()) - sum(before.values())
    assert table.log.prints.count.sum() + 2 * delivered + 2 == entries["default"]
    assert found["index_entry_missing"] == table.log.prints.count.sum() - table.index.prints.count.sum()
    assert found["transaction_entry_missing"] == entries["trans"] - 1 - 3

"""The log of a DLedger group (dledger.md).

* `entry_walk`: a data file by its entry headers, each against its index unit; `unit_reader`: units of the index files, and the
  texts checkpoint and currterm; `ledger_walks`: what was read of all of them.
* `ledger_chain`: all data files as one chain, without what a cut has left.
* `ledger_recovery`: DLedgerMmapFileStore.recover as a fold over the walks; `ledger_fold`: the whole start of such a broker.
* `ledger_kind`: the kind; `ledger_checks`: the checks.
* `ledger_plan`: a repair of a node alone in its group, as edits of a copy.
* `ledger_parts`: the parts of entries that stay, and the entries that fill a gap between two.
* `group_files`: index units, checkpoint and currterm, made anew from the data.
"""

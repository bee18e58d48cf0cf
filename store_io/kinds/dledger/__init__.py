"""The log of a DLedger group (dledger.md).

* `entry_walk`: a data file by its entry headers, each against its index unit; `unit_reader`: units of the index files.
* `ledger_texts`: checkpoint and currterm; `ledger_walks`: what was read of all of them.
* `ledger_chain`: all data files as one chain, without what a cut has left.
* `unit_list`: the list of index files while recovery cuts it and writes units anew.
* `ledger_recovery`: DLedgerMmapFileStore.recover as a fold over the walks; `ledger_fold`: the whole start of such a broker.
* `entry_chain`, `ledger_index`, `ledger_terms`: the checks.
* `ledger_plan`: a repair of a node that is alone in its group, as edits of a copy; `refusals`: which stores it is not written for.
* `ledger_parts`, `gap_entries`: the parts of entries that stay, and the entries that fill a gap between two.
* `group_files`: index units, checkpoint and currterm, made anew from the data.
"""

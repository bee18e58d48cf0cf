"""Readers of a DLedger group's files (dledger.md 1). They say what it holds; `store_io.rules.dledger` says what follows.

* `entry_walk`: a data file by its entry headers, each against its index unit.
* `unit_reader`: units of the index files: by number, and all of a file as runs.
* `ledger_texts`: checkpoint and currterm.
"""

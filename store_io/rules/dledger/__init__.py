"""The rules of a broker with a DLedger log (dledger.md): the group's files, its own recovery, and the CommitLog's around it.

* `ledger_files`: the group's folder, its files as DLedger loads them, or why the process ends.
* `ledger_walks`: what was read of data files, index units and the two texts.
* `ledger_chain`: all of them as one chain, without what a cut has left.
* `unit_list`: the list of index files while recovery cuts it and writes units anew.
* `ledger_recovery`: DLedgerMmapFileStore.recover as a fold over the walks.
* `ledger_fold`: the whole start of a broker with a DLedger log.
"""

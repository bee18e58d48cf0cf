"""A DLedger group's files against each other (dledger.md 5, 6). The segment scan checks the records in entries.

* `entry_chain`: indexes and terms of all entries, file after file; leftovers of a cut.
* `ledger_index`: index units against entries, and entries that units or the checkpoint know and the data lack.
* `ledger_terms`: the terms of the entries against currterm.
"""

"""What lies at one physical offset.

* `explain_place`: the whole answer. `explain_record`: a record, field by field. `explain_pointers`: entries that lead to it.
* `explain_ledger`: the header before a record of a DLedger log, and what a start does there.
"""

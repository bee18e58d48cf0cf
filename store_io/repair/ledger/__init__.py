"""The log of a DLedger node that is alone in its group, repaired (dledger.md 7).

* `refusals`: which of these stores no repair is written for, and why.
* `ledger_parts`: entries that stay, as parts in which they follow one another, and which of the parts make one chain.
* `gap_entries`: the entries that fill a gap between two parts: with the right indexes, term and positions.
* `ledger_plan`: the whole of it as edits of a copy.
* `group_files`: index units, checkpoint and currterm, made anew from the data.
"""

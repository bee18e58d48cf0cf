"""Damaged records made whole by one change that everything else in the store leads to (heal.md). Nothing is written here.

* `places`: where to search: damage that the scans report.
* `heal_task`: the search of one segment's places.
* `record_changes`: the single changes that make one record whole; `filler_changes`: the same of a segment's filler.
* `witnesses`: what queue entries and neighbours in the log say of it.
* `judgement`: which change is made, and the risk that it is the wrong one.
* `changes`: the rows that travel between these.
"""

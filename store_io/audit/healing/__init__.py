"""Damaged records made whole by one change that everything else in the store leads to (heal.md). Nothing is written here.

* `heal_task`: where to search, and the search of one segment's places, its filler too.
* `record_changes`: the single changes that make one record whole.
* `witnesses`: what queue entries and neighbours in the log say of it.
* `judgement`: which change is made, and the risk that it is the wrong one.
* `changes`: the rows that travel between these.
"""

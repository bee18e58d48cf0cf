"""Checks of the timer store (timer.md 6).

* `timer_findings`: units, wheel and checkpoint, and the messages that a start would never deliver.
* `timer_entries`: timers in RocksDB.
"""

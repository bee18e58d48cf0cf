"""The timer store of one copy (timer.md).

* `timer_files`: which of its files there are, and whether the release takes them.
* `timer_view`: all that is known of it once everything was read, and what a start makes of it.
* `timer_units_check`: units of the timer log against the messages that they lead to.
* `timer_entries_check`: entries of timers in RocksDB against the messages that they lead to.
* `timer_part`: a part of the timer messages, where they are too many to be held together.
"""

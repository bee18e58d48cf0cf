"""The timer store (timer.md).

* `timer_check`: config/timercheck; `timer_units`: units of the timer log; `timer_slots`: slots of the wheel.
* `timer_files`: which of its files a copy has, and whether the release takes them.
* `timer_task`: one task that reads all of them; `timer_records`: the timer messages that a scan of the log collects.
* `timer_part`: a part of the timer messages, if they are too many to be held together.
* `timer_recovery`, `timer_reach`: where recovery begins and ends in the timer log; the units that a start finds from the slots.
* `timer_fates`, `timer_waiting`: which timer messages are delivered after a start, wait, or never will be.
* `timer_view`: all that is known once everything was read, and what a start makes of it.
* `timer_units_check`, `timer_entries_check`: units, and entries in RocksDB, against the messages that they lead to.
* `timer_findings`, `timer_entry_findings`: the checks.
* `timer_rebuild`: a new store's timer files; `waiting_timers`: the messages that they lead to; `new_timers`: their bytes.
"""

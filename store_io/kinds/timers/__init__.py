"""The timer store (timer.md).

* `timer_units`: units of the timer log, and slots of the wheel.
* `timer_table`: entries of timers in rocksdbstore/.
* `timer_files`: config/timercheck; which of the files a copy has, and whether the release takes them.
* `timer_task`: one task that reads all of them; `timer_records`: the timer messages that a scan of the log collects.
* `timer_part`: a part of the timer messages, if they are too many to be held together.
* `timer_recovery`: where recovery begins and ends in the timer log; the units that a start finds from the slots.
* `timer_fates`: which timer messages are delivered after a start, wait, or never will be.
* `due_timers`: what the clock of a start makes of those that wait.
* `timer_view`: all that is known once everything was read, and what a start makes of it.
* `timer_units_check`: compares units, and entries in RocksDB, with their messages.
  A unit is checked in three places: its form in `timer_units`, links and slots in `timer_task`, its message here.
* `timer_kind`: the kind; `timer_findings`: the checks, which report it all.
* `timer_rebuild`: a new store's timer files; `waiting_timers`: the messages that they lead to; `new_timers`: their bytes.
"""

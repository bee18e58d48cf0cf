"""The timer store's files (timer.md).

* `timer_check`: config/timercheck.
* `timer_units`: units of the timer log, window by window.
* `timer_slots`: slots of the wheel.
* `timer_task`: one task that reads all of them.
* `new_timers`: the bytes of a new log, wheel and checkpoint.
"""

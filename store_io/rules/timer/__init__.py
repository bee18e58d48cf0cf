"""The effect of a start on the timer store (timer.md 5).

* `timer_recovery`: where recovery begins and ends in the timer log, and from where the timer topic is read on.
* `timer_reach`: which units of the timer log a start finds from the slots.
* `timer_fates`: which timer messages are delivered after a start, wait, or never will be.
* `timer_waiting`: the units of a new timer log: one for each message that is not delivered yet.
"""

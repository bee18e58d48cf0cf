"""The timer messages that a scan collects (timer.md 6).

* `timer_records`: timer messages and their delivered copies, as small rows.
"""

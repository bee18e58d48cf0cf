"""What a scan collects of timer messages (timer.md 6).

* `timer_records`: timer messages and their delivered copies, as small rows.
"""

"""The messages that a consumer would get from a started broker.

* `broker_view`: by queue and by key, entry by entry.
* `appended_entries`: the entries that a start would add.
* `served_rows`: the messages as rows.
"""

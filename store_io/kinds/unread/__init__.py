"""Logs in the copy that a start does not read under the settings that were named.

* `unread_logs`: finds such folders by names and settings alone.
* `unread_kind`: the kind, the tasks that count the messages of such logs, and the check that makes the findings.
"""

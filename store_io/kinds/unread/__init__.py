"""Logs in the copy that a start does not read under the settings that were named.

* `unread_logs`: finds such folders by names and settings alone.
* `count_tasks`: counts the messages in one file of such a log, without those that the node's own log holds too.
* `unread_kind`: the kind, and the check that makes the findings.
"""

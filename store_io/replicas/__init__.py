"""Copies of one CommitLog, compared with each other.

* `same_logs`: finds copies of one log that nobody has put into a group.
* `replica_groups`: groups the copies, asks for tasks, takes in their results.
* `replica_compare`: one segment of a copy against the others; a place with another message is where copies have diverged.
* `replica_parts`: what a segment's comparison finds.
* `compared_copies`: the copies of a group with all that was found, as findings.
* `behind`: findings on a copy that must not become master as it is.
* `tables_ahead`: which offsets of consumers are greater in another copy, which topics and groups a copy lacks.
* `group_of_copies`: all that is said of a group, with who could be elected in a DLedger group, and what a replica in controller
  mode would lose as slave of another.
"""

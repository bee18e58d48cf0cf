"""The checks of the files of config/ against the rest of the copy.

* `lost_tables`: tables that a start takes from an older copy, or begins without.
* `against_queues`: topics that clients cannot find, and delayed messages that are delivered again.
* `narrow_topics`: queues that a topic's numbers leave out.
"""

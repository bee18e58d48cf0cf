"""The checks of the logs of compacted topics.

* `compacted_topics`: their files, their records and entries, and how far they reach.
"""

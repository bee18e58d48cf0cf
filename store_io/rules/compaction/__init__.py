"""The effect of a release's start on the logs of compacted topics.

* `compacted_queues`: names and lengths -> the queues that load() opens, and why it refuses or leaves one out.
* `sparse_recovery`: the entries of the last files -> what recovery deletes, and whether the names agree then.
"""

"""Checks of what controller mode keeps beside the store.

* `epoch_findings`: the epoch file by itself and against the log.
"""

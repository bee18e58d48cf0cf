"""What controller mode keeps beside the store (controller.md).

* `epoch_file`: the epochs, and whether a start fails over their file.
* `broker_identity`: cluster, broker name and id that the controller knows the broker by.
* `epoch_starts`: the task: which epochs begin at no record.
* `epoch_findings`: the checks.
* `epoch_rebuild`: the epoch file of a new store.
"""

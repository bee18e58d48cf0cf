"""What controller mode keeps beside the store (controller.md).

* `controller_files`: the epochs, and whether a start fails over their file; by which name and id the controller knows the broker.
* `epoch_starts`: the task: which epochs begin at no record.
* `controller_kind`: the kind; `epoch_findings`: the checks.
* `epoch_rebuild`: the epoch file of a new store.
* `identity_names`: the names in brokerIdentity against those in broker.conf.
"""

"""Readers of what controller mode keeps beside the store.

* `epoch_file`: the epochs, and whether a start fails over their file.
* `broker_identity`: cluster, broker name and id that the controller knows the broker by.
"""

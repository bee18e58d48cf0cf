"""The store's checkpoint (formats.md 7).

* `checkpoint_reader`: its fields.
* `checkpoint_kind`: the kind, and the check of its times against the log's.
* `checkpoint_rebuild`: the checkpoint of a new store.
"""

"""Where each field of a file, a key or a value lies.

* `commitlog_layout`, `dledger_layout`, `consumequeue_layout`, `rocksdb_layout`, `index_layout`, `checkpoint_layout`,
  `timer_layout`: one kind of file each.
* `entries`: entries of derived files, units and slots of timers as numpy dtypes.
* `store_names`: names of folders below a store's root.
"""

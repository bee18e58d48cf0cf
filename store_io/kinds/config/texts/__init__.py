"""The texts in config/, and the tables that a broker's managers make of them.

* `fastjson`: a text as the release's parser reads it, also one that no broker writes.
* `written`: tables as a release writes them.
* `held_tables`: tables that a release keeps in RocksDB; `records`: keys and values of the second version.
* `values`: a value as the parser takes it for a field of some kind; `beans`: which fields the managers' objects have.
* `salvage`: what can be read in a text that no parser takes, for a repair; which tables each file has.
* `table_forms`: the forms in which a copy holds a table, which of them a repair takes, and what only the others show.
* `tables`: what is read -> topics, groups, offsets, delay offsets; what a manager refuses.
"""

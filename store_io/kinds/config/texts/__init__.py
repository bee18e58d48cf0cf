"""The forms in which a copy holds the tables of config/; what a release makes of their texts is in `broker.texts`.

* `held_tables`: tables that a release keeps in RocksDB; `records`: keys and values of the second version.
* `salvage`: what can be read in a text that no parser takes, for a repair; which tables each file has.
* `table_forms`: the forms in which a copy holds a table, which of them a repair takes, and what only the others show.
"""

"""The files below config/: topics, groups, offsets (config.md).

* `config_kind`: what an audit asks of config/, and what the managers hold after the load.
* `config_reader`: the files as the release's managers load them; `texts`: the texts themselves, and the tables in them.
* `table_places`: where a release keeps tables in RocksDB.
* `other_forms`: tables of which another form in the copy shows more than a start holds.
* `start_files`: files and databases over which a start ends, and files that this audit does not judge.
* `lacking_topics`: topics with messages that the table lacks, and what shows that they were lost.
* `consumer_groups`: the checks of groups and their offsets, of a slave's copy, and of one without config/ whose log shows that
  groups consumed.
* `lost_tables`, `against_queues`: the checks: tables that are lost, or that do not fit the queues.
* `offsets_beyond`: offsets beyond the end that a start gives their queue.
* `rebuild`: the files that a repair writes.
"""

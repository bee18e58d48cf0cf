"""The files below config/: topics, groups, offsets (config.md).

* `config_kind`: what an audit asks of config/.
* `config_reader`: the files as the release's managers load them; `texts`: the texts themselves, and the tables in them.
* `table_places`: where a release keeps tables in RocksDB; `built_in_topics`: topics and groups that need no file.
* `other_forms`: tables of which another form in the copy shows more than a start holds.
* `opened_databases`: databases that a start opens besides queues and tables; `start_files`: files over which a start ends, and
  files that this audit does not judge.
* `config_section`: what the managers hold after the load.
* `lost_tables`, `against_queues`: the checks: tables that are lost, or that do not fit the queues.
* `offsets_beyond`: offsets beyond the end that a start gives their queue.
* `rebuild`: the files that a repair writes.
"""

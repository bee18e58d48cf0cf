"""The reading of the files below config/ by a release.

* `files`: which of them it reads, in which order, and without which of them it does not start.
* `reading`: how its parser reads texts that no broker writes, and where its tables come from.
* `databases`: where it keeps tables in RocksDB.
* `built_in`: the topics and groups that every broker has without a file.
"""

"""Databases of RocksDB inside a copy: read without leaving a byte in it, by a process that may die of what it reads.

* `private_folder`: a folder of our own in which the database's files are, as links or copies.
* `process`: how such a process is started, and how it ends.
* `database_reader_child`: the program of that process: opens the folder and writes entries to a pipe.
* `kept_open`: opened databases, which stay open for an audit's next reader.
* `database`: `StoredDatabase`: folder and files; `Database`: asks the process for ranges of keys, as batches of columns.
"""

"""The copy as files. Everything below reads through here.

* `byte_source`: opens a store's files, read-only; with `s3_folder` and `hdfs_folder` the only one that does.
* `remote_file`: a file of another machine, read in blocks with as few requests as can be, and what a process keeps of it.
* `s3_folder`, `s3_client`: a store whose files are objects of an S3-compatible server; how it is reached, what its errors mean.
* `hdfs_folder`, `hdfs_client`: the same for HDFS.
* `storage_options`: what a command line may set of both.
* `file_columns`: the names of a store in little memory.
* `store_dir`: the names in a store: what lies where, and what of it no release writes.
* `segment_window`: a bounded window that moves over a segment.
* `byte_search`: where some bytes lie in a file.
"""

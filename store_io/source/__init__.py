"""The copy as files. Everything below reads through here.

* `byte_source`: a store's files by their paths, read-only.
* `byte_file`: a file that is read, and a tree of files: what every medium offers.
* `local_folder`: a tree on this machine; with `s3_folder`, `hdfs_folder` and `arrow_folder` all that opens a store's files.
* `arrow_folder`: a tree on a file system that pyarrow reaches.
* `remote_file`: a file of another machine, read by as few requests as can be; `disk_cache`: what was fetched, for all processes.
* `s3_folder`, `s3_client`: a store whose files are objects of an S3-compatible server; how it is reached, what its errors mean.
* `s3_answers`: what is taken of such a server's answer, and when it is asked again.
* `hdfs_folder`, `hdfs_client`: the same for HDFS.
* `storage_options`: what a command line may set of both, and what tasks on other machines get of it.
* `store_dir`: the names in a store: what lies where, and what of it no release writes.
* `segment_window`: a bounded window that moves over a segment; `piece_digest`: the digest of a file.
"""

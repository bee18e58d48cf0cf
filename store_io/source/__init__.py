"""The copy as files. Everything below reads through here.

* `byte_source`: opens a store's files, read-only; with `s3_folder` the only one that does.
* `s3_folder`: a store whose files are objects of an S3-compatible server, in blocks, with as few requests as can be.
* `s3_client`: how such a server is reached, and what its errors mean.
* `store_dir`: the names in a store: what lies where, and what of it no release writes.
* `segment_window`: a bounded window that moves over a segment.
* `byte_search`: where some bytes lie in a file.
"""

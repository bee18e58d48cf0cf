"""The copy as files. Everything below reads through here.

* `byte_source`: the only module that opens a store's files, read-only.
* `store_dir`: the names in a store: what lies where, and what of it no release writes.
* `segment_window`: a bounded window that moves over a segment.
* `byte_search`: where some bytes lie in a file.
"""

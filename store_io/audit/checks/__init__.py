"""What is wrong with a copy, as findings.

* `store_diff`: the rebuilt queues and index files against those on disk.
* `emptied`: a copy without its messages, or with fewer than an earlier audit saw.
* `given_up`: what the repair that made this store could not keep.
* `live_copy`, `unwritten`: parts of a copy from different moments; zeros before messages.
* `size_misfits`: sizes in broker.conf that no file has.
* `unjudged`: what a start reads and this audit does not judge.
"""

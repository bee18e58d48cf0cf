"""Facts that follow from several parts of a copy. They know of no check.

* `unwritten`: zeros in the log before messages.
* `live_copy`: parts of a copy from different moments.
* `size_misfits`: sizes in broker.conf that no file has.
* `odd_settings`: lines of broker.conf that a release takes otherwise than they read, or ignores.
* `named_files`: findings on a file's name or length.
* `log_place`: a CommitLog that broker.conf keeps elsewhere.
"""

"""What a start of the release would do, and what it reads besides log, queues and index.

* `broker_start`: what a start would refuse, drop or leave without an entry.
* `size_misfits`: sizes in broker.conf that no file has.
* `unjudged`: files that a start reads and this audit does not judge.
"""

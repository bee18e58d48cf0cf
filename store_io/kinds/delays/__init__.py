"""Messages of delay levels that wait in SCHEDULE_TOPIC_XXXX, one queue for each level.

* `delay_runs`: messages of the log, and entries of the queues, as runs with one time; the tasks that collect them.
* `delay_kind`: the kind: from which offset on a broker reads each level, up to where, and which entries a start puts itself.
"""

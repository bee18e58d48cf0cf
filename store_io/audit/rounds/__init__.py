"""An audit's rounds of independent tasks, and the fold between them.

* `store_rounds`: which tasks next; what a start would do, and lose.
* `table_making`: the tasks on index and transactions in RocksDB.
* `task_making`: tasks from files: segments, index files, edges, second looks.
* `queue_making`: tasks on queues, and on entries that no message matched.
* `collected`: what the tasks have found, taken in one by one.
* `earlier_segments`: what an earlier run says of segments that are unchanged; which to read first.
"""

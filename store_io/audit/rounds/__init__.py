"""An audit's rounds of independent tasks, and the fold between them.

* `store_rounds`: which tasks next; what a start would do, and lose.
* `task_making`: tasks from files: segments, queues, index files, edges, second looks, leftovers.
* `collected`: what the tasks have found, taken in one by one.
* `earlier_segments`: what an earlier run says of segments that are unchanged; which to read first.
"""

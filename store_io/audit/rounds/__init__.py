"""An audit's rounds of independent tasks, and the fold between them.

* `store_rounds`: which tasks next, and what they have found; what a start would do, and lose.
* `task_making`: tasks from files: segments, edges, second looks; entries that no message matched.
"""

"""How tasks are run.

* `runner`: a round of tasks as Spark jobs; `task_process`: one task, in a process of its own after a worker was lost.
* `progress`: how far they are.
* `threads_or_spark`: tasks of one store, in threads of this process or on Spark.
"""

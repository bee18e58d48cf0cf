"""How tasks are run.

* `runner`: a round of tasks as Spark jobs; `task_process`: one task, in a process of its own after a worker was lost.
* `progress`: how far they are.
* `spark_start`: from which size on Spark is worth its start, and what is left out of a process that wants to start quickly.
"""

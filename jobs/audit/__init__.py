"""A run over one or many stores.

* `run_audit`: the run as a table of contents.
* `runner`: tasks on Spark.
* `listing`, `earlier_runs`: Spark's own listing as a second witness; what earlier runs saw.
* `outcomes`, `results`, `datasets`: stores that no audit could judge; result.json; record-level datasets.
* `add_repair_sections`: the steps of a repair, in each store's plan.
* `run_lock`, `progress`: one run at a time into one folder; its progress.
"""

"""A run over one or many stores.

* `run_audit`: the run as a table of contents; `one_store`: all of a small store's audit as one task.
* `runner`: tasks on Spark; `store_batches`: which stores go through it together.
* `finished_stores`: what a killed run had finished, for the one that is started again under its id.
* `listing`, `earlier_runs`: Spark's own listing as a second witness; what earlier runs saw.
* `found_since`: what runs have found in segments since these were verified.
* `outcomes`, `results`, `datasets`: stores that no audit could judge; result.json; record-level datasets.
* `add_repair_sections`: the steps of a repair, in each store's plan.
* `run_lock`, `progress`: one run at a time into one folder; its progress.
"""

"""A run over one or many stores.

* `run_audit`: the run as a table of contents; `one_store`: all of a small store's audit as one task.
* `store_batches`: which stores go through Spark together.
* `finished_stores`: what a killed run had finished, for the one that is started again under its id.
* `earlier_runs`: what earlier runs saw, and have found since.
* `copy_at_rest`: signs that a copy is still written to; Spark's own listing as a second witness.
* `results`: result.json, and outcomes of stores that no audit could judge.
* `cluster_mode`: the driver in a cluster, and the wait for its result.
"""

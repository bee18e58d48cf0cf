"""The Delta tables of all runs.

* `delta_tables`: reading them, and appending a run.
* `delta_log`: commits without a JVM.
"""

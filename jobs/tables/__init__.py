"""The Delta tables of all runs.

* `delta_tables`: reading them with Spark, and appending a run.
* `delta_log`: commits without a Spark job; `delta_rs_log`: without a JVM; `remote_log`: in S3 and HDFS;
  `data_file`: what they commit.
* `delta_query`: SQL with small answers, without a JVM.
* `upkeep`: what is taken out of them after years.
* `store_names`: what they call a store.
* `table_address`: where a table lies, and the error of all three.
"""

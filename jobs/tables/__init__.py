"""The Delta tables of all runs.

* `delta_tables`: reads them with Spark, and appends a run; `datasets`: record-level tables, written by tasks.
* `delta_log`: commits without a Spark job; `delta_rs_log`: without a JVM; `remote_log`: in S3 and HDFS.
* `table_files`: the address of a table, the files that are committed, and the error of all that read or write one.
* `file_statistics`: what a table's log says of a file's columns, by which readers skip files.
* `delta_query`: SQL in this process, without a JVM.
* `past_runs`: what runs say together: rows, times, names and pages, for the commands that read no store.
* `names_in_tables`: what the tables call a store.  `earlier_times`: store times of segments, by the newest audit.
* `table_care`: rows taken out and files put together after years; the runs that stay.
"""

"""Copies, results and tables in a real HDFS: a NameNode and a DataNode on this machine (mark: hdfs).

* `small_hdfs`: the two, each in a process of its own; `hadoop.toml`: the jar that they need besides Spark's.
"""

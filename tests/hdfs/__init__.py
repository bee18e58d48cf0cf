"""Copies, results and tables in a real HDFS: a NameNode and a DataNode on this machine (mark: hdfs).

* `small_hdfs`: the two, each in a process of its own (`tests.support.processes.hadoop`).
"""

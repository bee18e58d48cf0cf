"""Python, Java and Spark, where there is nothing but Python; the processes and files of a command.

* `setup`: makes the environment once; `java`: the Java runtimes of this machine; `wheel`: what an installed wheel uses.
* `compiled_code`: the folder of compiled decoders.
* `jvm`, `session`: the only Spark; `python_workers`: its Python workers, which have loaded everything before they are wanted.
* `spark_start`: Spark for one command, when it is first asked for or beside other work.
* `cluster_wait`: says what a cluster keeps a command waiting for.
* `source_notes`: what data sources have to say, on the driver's standard error.
* `faults`, `interrupts`: exceptions in one line; signals.
* `output`: files whole or not there, by one run at a time; `remote_files`: where they lie elsewhere; `uploads`: whole folders
  that go there.
"""

"""Python, Java and Spark where there is nothing but Python.

* `installation`: whether this is the project's folder or an installed wheel; `wheel`: what a wheel uses.
* `setup`: makes the environment once; `java`: the Java runtimes of this machine. Standard library only.
* `compiled_code`: where compiled decoders are kept.
* `warm_up`: fills caches, so that the first run is quick.  `worth_spark`: from which size on a command starts Spark by itself.
* `packaging`, `executor_code`, `hadoop_settings`, `cluster`: what executors elsewhere need; cluster deploy mode.
"""

"""Python, Java and Spark where there is nothing but Python.

* `setup`: makes the environment once; standard library only.
* `warm_up`: fills caches, so that the first run is quick.
* `packaging`, `cluster`: what executors elsewhere need; cluster deploy mode.
"""

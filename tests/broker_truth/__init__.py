"""The product held against real RocketMQ releases (mark: broker; here `test_corpus` and `test_served` go by what was recorded).

* `harness`: real releases, driven from Python.
* `rocksdb`, `settings`, `mended`: by what the stores hold, by configuration, and after a repair.
"""

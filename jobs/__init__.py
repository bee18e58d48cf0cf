"""WHERE it runs: Spark and Delta. No byte offsets, no magics.

* `cli`: arguments in, exit code out; `command_line`: what the arguments may be.
* `environment`: what is installed; `jvm`, `session`: the only Spark; `warm_workers`, `worker_daemon`: its Python workers;
  `cluster_wait`: says what a cluster keeps them waiting for.
* `audit`: a run over one or many stores; `tables` and `history`: what is kept of runs, and what they say together.
* `explore`: messages for people; `sources`, `spark_sources`: stores as Spark data sources.
* `repair`: a new store; `rescue`: audit, choice, repair and hand-over in one command.
* `report`: texts, pages and files.
* `bench`, `run_tests`: speed; lint, types and tests.
* `output`: files whole or not there; `remote_files`: where they lie elsewhere; `uploads`: whole folders that go there.
* `without_pandas`: less to load for short commands.
* `running_broker`: signs that a broker still writes to a copy.
* `faults`, `interrupts`, `task_process`: exceptions in one line; signals; tasks in processes of their own.
"""

VERSION = "0.1.0"  # pyproject.toml's; it is repeated here, because executors and cluster drivers have no pyproject.toml
RULES_VERSION = "7"  # of what is judged: goes up when the same bytes may be judged differently

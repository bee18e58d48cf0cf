"""WHERE it runs: Spark and Delta. No byte offsets, no magics.

* `entry`: arguments in, exit code out; `installation`: the place from which this program runs.
* `warm_up`: fills caches, so that the first run is quick.

Folders, each of which imports only from those before it; a test knows the order.

* `cli`: what the arguments may be.
* `report`: texts, pages and files.
* `runtime`: what is installed; the only Spark; files whole or not there.
* `tables`: what is kept of runs, and what they say together.
* `tasks`: tasks in threads, in Spark, in processes of their own.
* `audit`: a run over one or many stores.
* `repair`: what repairs share; `messages`: what questions about messages share.
* `sources`: stores as Spark data sources.
* `commands`: one module a command.
"""

VERSION = "0.1.0"  # pyproject.toml's; it is repeated here, because executors and cluster drivers have no pyproject.toml
RULES_VERSION = "9"  # of what is judged: goes up when the same bytes may be judged differently

"""One module a command, with `run(command)`: it reads as the command's table of contents.

* `audit`: the verdict on copied stores; `rescue`, `repair`: a new store, with and without a choice of ways.
* `after_start`: whether a store on which a broker was started is what was predicted.
* `explain_offset`, `query`, `export`, `copy_manifest`: one place, messages that match, messages as files, digests of a copy.
* `past/`: commands that read tables and no store.
* `tables_command`: `tables prune|compact|vacuum|info|views`.
* `pack`: what executors on other machines need.  `explain_code`: what a finding or a stop reason means.
* `notebook`, `script`: JupyterLab, and a script, with Spark and the data sources ready.
"""

"""The broker's settings, and the files that they name.

* `given_settings`: a value of broker.conf -> what the release takes it for.
* `known_keys`: every name that a release reads, and the name that was meant.
* `unsafe_settings`: those under which a broker harms what it writes from now on.
* `read_settings`: broker.conf, and the sizes that the files themselves show.
* `day_settings`: those that decide nothing of a start, but of the hours after it.
* `config_rules`: the files below config/ that a release reads, without which of them it does not start, and how its parser reads.
* `built_in_topics`: topics and groups that a broker makes by itself, so that no file has to name them.
* `ledger_files`: a DLedger group's folder, its files as DLedger loads them, or why the process ends.
"""

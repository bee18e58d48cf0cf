"""The broker's settings, and the files that they name.

* `given_settings`: a value of broker.conf -> what the release takes it for.
* `known_keys`: every name that a release reads, and the name that was meant.
* `unsafe_settings`: those under which a broker harms what it writes from now on.
* `read_settings`: broker.conf, and the sizes that the files themselves show.
* `config_files`: the files below config/ that a release reads, in which order, and without which of them it does not start.
* `config_rules`: how its parser reads texts that no broker writes, and where its tables come from.
* `ledger_files`: a DLedger group's folder, its files as DLedger loads them, or why the process ends.
"""

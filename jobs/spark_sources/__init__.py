"""The Spark data sources, which `jobs.sources` registers: no audit, no tables.

* `store_source`: what all sources share: options, columns, one store or several in one load.
* `conditions`: Spark's conditions as filters of messages.
* `messages`, `entries`, `offsets`, `transactions`: the sources.
"""

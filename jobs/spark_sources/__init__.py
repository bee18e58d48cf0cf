"""The Spark data sources, which `jobs.sources` registers: no audit, no tables.

* `store_source`: what all sources share: options, columns, one store or several in one load.
* `conditions`: Spark's conditions as filters of messages.
* `notes`: what they have to say, on the driver's standard error.
* `copies`: copies of messages as Parquet or Delta, for many questions.
* `messages`, `entries`, `offsets`, `transactions`: the sources.
"""

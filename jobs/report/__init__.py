"""Rendering only: rows in, text out. No Spark, no files. Exit codes and safety are decided in `store_io`.

* `texts`: what a terminal shows, and the words that pages and terminals share.
* `pages`: HTML.
* `past_views`: what the commands that read tables say, as values; `values_as_rows`: values of rows, JSON of values.
* `files`: plan.json, findings.jsonl, result.json, replicas.json, metrics.
"""

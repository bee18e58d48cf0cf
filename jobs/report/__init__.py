"""Rendering only: rows in, text out. No Spark, no files. Exit codes and safety are decided in `store_io`.

* `texts`: what a terminal shows, and the words that pages and terminals share.
* `pages`: HTML.
* `files`: plan.json, findings.jsonl, result.json, replicas.json, metrics.
"""

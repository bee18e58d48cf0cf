"""One CommitLog segment in one pass, whatever its bytes are.

* `segment_scan`: the pass: what the audit and the broker make of each byte.
* `segment_runs`: messages of one queue that follow each other, summed up.
* `other_walks`: walks by the rules of other brokers, which one scan follows.
* `resync`, `candidate_frames`: the next valid message after damage.
* `queues`, `index`: each message's queue and index entries on disk.
* `segment_edges`, `segment_times`: a segment's two ends; its store times.
* `odd_headers`, `torn_copies`: valid messages that are unusual.
* `segment_findings`: a bounded collection of findings.
* `dataset_rows`, `row_texts`: the accepted messages as rows.
* `compaction`: the logs of compacted topics, which are no segments.
* `summary_pickle`, `stored_runs`: summaries on their way to the driver; those of which the driver holds no runs.
* `link`: the compiled decoder, in memory before the first scan.
* `tables`: what messages leave in the tables of rocksdbstore/.
* `timer`: timer messages and their delivered copies, as small rows.
"""

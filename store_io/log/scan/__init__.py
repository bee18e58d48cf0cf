"""One CommitLog segment in one pass, whatever its bytes are.

* `segment_scan`: the pass: what the audit and the broker make of each byte.
* `segment_runs`: messages of one queue that follow each other, summed up; `batch_items`: a row for each queue of a message.
* `other_walks`: walks by the rules of other brokers, which one scan follows.
* `followers`: what kinds of files have a scan do for them.
* `resync`: the next valid message after damage.
* `segment_edges`, `segment_times`: a segment's two ends; its store times.
* `odd_headers`: valid messages that are unusual, torn copies among them.
* `segment_findings`: the place of a finding, and a finding on one message.
* `dataset_rows`, `row_texts`: the accepted messages as rows.
* `stored_runs`: summaries on their way to the driver, and those of which the driver holds no runs.
"""

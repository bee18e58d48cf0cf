"""The CommitLog of a new store.

* `log_plan`: where it ends, what is cut, zeroed, bridged and filled; `edits`: the acts on the copy that it leads to, and
  what all ask of one segment.
* `heal`: damaged records made whole by one change, with --heal.
* `donor`: damaged bytes taken from another copy; `two_logs`: whether the two are copies of one log.
* `lengthen`: a record that takes in the few damaged bytes after it.
* `pad`: segments after a log whose end the release would not take.
"""

"""The CommitLog of a new store.

* `log_plan`: where it ends, what is cut, zeroed, bridged and filled; `edits`: the acts on the copy that this comes to.
* `donor`: damaged bytes taken from another copy.
* `pad`: segments after a log whose end the release would not take.
"""

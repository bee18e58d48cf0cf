"""Half messages that a started broker still looks at, and the messages that decide them.

* `half_rows`: both, as small rows; the task that collects them.
* `half_kind`: the kind: from which offsets on, up to where.
"""

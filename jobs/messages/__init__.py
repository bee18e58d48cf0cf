"""Messages for people: what `query`, `export` and `explain` share.

* `message_arguments`: options of them all, and a topic that a copy does not have.
* `audited`: an audit for those that ask what a start does.
* `broker_rows`: what `query --view broker` shows; `last_messages`: the last messages of a query.
* `export_files`: messages as files.
"""

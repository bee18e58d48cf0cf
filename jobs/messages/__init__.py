"""Messages for people: what `query`, `export` and `explain` share.

* `message_arguments`: options of them all, and a topic that a copy does not have.
* `audited`: an audit for those that ask what a start does.
* `message_query`: a query's command line; `copy_rows`, `broker_rows`: its rows, by the copy or as a broker would serve them.
* `last_messages`: the last messages of a query, and tasks that run in waves.
* `export_files`: messages as files.
"""

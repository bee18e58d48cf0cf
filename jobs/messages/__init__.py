"""Messages for people: what `query`, `export` and `explain` share.

The search itself is `store_io.messages.question` and `answer`.

* `message_arguments`: options of them all, and a topic that a copy does not have.
* `message_query`: a query's command line.
* `export_files`: messages as files.
"""

"""Messages for people, as commands.

* `explain`, `query`, `manifest`: one place, messages that match, digests of a copy.
* `broker_rows`: what `query --view broker` shows.
* `export`, `export_files`: messages as files.
* `audited`: an audit for those that ask what a start does.  `earlier_times`: store times of segments, by the tables of audits.
* `arguments`: options of them all.  `unknown_topics`: a topic that a copy does not have.
* `last`: the last messages of a query.  `waves`: tasks of a search in parts that grow.
* `script`: a script with Spark and the data sources ready.
* `explain_code`: what a finding or a stop reason means.  `notebook`: JupyterLab with this environment.
"""

"""WHAT: the bytes and the rows. No logic, no Spark.

* `layouts/`: where each field of a file, a key or a value lies.
* `rows`: the dataclasses that travel between the packages.
* `outcome`: everything that the audit of one store says, frozen values.
* `pickled`: pickles small values by their fields alone.
* `advice`: why a broker refuses a store; what to do next; why an audit is incomplete, and what that means for the exit code.
* `answer`: the one answer about a copy, and its steps.
* `losses`: what a start loses of a copy, what it lacks already, and what an audit left unread.
* `replicas`: copies of one broker's log, compared.
* `repair`: what a repair would do and did: its steps, its answer by each policy, its report.
* `start_effect`: what a start of the release does with a copy, and the settings with which it is foreseen.
* `first_day`: what a started broker does to a store by itself in its first day.
* `finding_codes`: severities, and the catalogue of findings: code, severity, what it is about, cure, meaning, next step.
* `severity_cases`: circumstances in which a finding weighs otherwise than its code.
* `sources`: the columns of the Spark data sources.
* `arrow`: Arrow schemas of the record-level datasets (messages, rebuilt ConsumeQueue and Index entries).
* `tables`: the Delta tables' columns, with unit and key in each comment; `table_views`: views beside them, as SQL.
"""

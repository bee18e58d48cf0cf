"""The answers of other releases and settings about the copy, from the same scan.

* `compared_audit`: an audit that answers for several releases, and asks for the tasks of all of them; `detect_release`,
  for the release of the copy's broker if the copy leaves no choice.
* `variants`: which releases and settings are tried, and which of them have the same rules.
* `shared_tasks`: tasks of several audits of one copy, each run once.
* `comparison`: the rows of the table, and which releases lose least.
"""

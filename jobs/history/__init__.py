"""The commands that read the tables of many runs, and no store.

* `reading`: the command line they share, and rows out of the Delta tables.
* `pages`: where the pages of earlier runs are.
* `fleet`: report: the latest run of each store, and each store's trend.
* `run_list`: runs: the runs in the tables.
* `difference`: diff: two runs, finding by finding and file by file.
* `coverage`: coverage: how much of the CommitLog was read completely, and when.

The commands end in a dict that is also their JSON; jobs/report renders it as text and as a page.
"""

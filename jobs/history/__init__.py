"""What the tables of many runs say: commands that read no store.

reading.py      the command line they share, and rows out of the Delta tables
pages.py        where the pages of earlier runs are
fleet.py        report: the latest run of each store, and each store's trend
run_list.py     runs: the runs in the tables
difference.py   diff: two runs, finding by finding and file by file
coverage.py     coverage: how much of the CommitLog was read completely, and when
The commands end in a dict that is also their JSON; jobs/report renders it as text and as a page.
"""

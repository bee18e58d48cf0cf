"""Tables for years: what is taken out of them, and how their files stay few.

* `command`: `tables prune|compact|vacuum|info`.
* `kept_runs`: which runs stay.
* `table_care`: one table's versions: rows taken out, files put together, its log.
* `table_folder`: one table's folder: its files, and their removal.
"""

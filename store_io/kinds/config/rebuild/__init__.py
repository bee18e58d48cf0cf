"""The files of config/ that a repair with --fix-config writes (config.md 9).

* `config_changes`: which files of a copy are to be replaced, by what, and what that leaves unproven. Nothing is written.
* `written_tables`: the text of such a file, of which the release takes every entry.
* `shown_tables`: topics, queues and groups that the rest of the copy shows.
* `offsets`: offsets of consumers and delay levels beyond the new ends of the queues.
* `fix_config`: the step of the repair that writes them; how far each delay level had delivered, by the copies in the log.
"""

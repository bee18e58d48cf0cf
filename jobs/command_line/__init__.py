"""The command line.

* `options`: words in, checked options out.
* `places`: the files, folders and URIs among them; nothing is written into a store.
* `command_table`: every other command, its options and its module.
* `message_filters`: the options that choose messages.
"""

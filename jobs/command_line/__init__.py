"""The command line.

* `options`: words in, checked options out.
* `command_table`: every other command, its options and its module.
* `message_filters`: the options that choose messages.
"""

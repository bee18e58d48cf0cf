"""The command line.

* `options`: words in, checked options out.
* `command_table`: the commands, each option declared once; `message_filters`: the options that choose messages.
* `parser`: argparse over these rows; `completion`: the shells' scripts from them; `values`: checks of single values.
* `title`: what other users of this machine see of a command line.
* `stores`: the stores that are named; `places`: files, folders and URIs, and that nothing is written into a store.
"""

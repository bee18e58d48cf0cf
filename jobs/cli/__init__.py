"""The command line as plain data. Standard library only.

* `options`: words in, checked options out.
* `command_table`: the commands, each option declared once; `message_filters`: the options that choose messages.
* `parser`: argparse over these rows; `completion`: the shells' scripts from them; `option_values`: checks of single values.
* `start_options`: when and on which disk a broker is started.
* `stores`: the stores that are named; `argument_places`: files, folders and URIs, and that nothing is written into a store.
* `terminal`: colours and columns.
"""

"""One reader per kind of file.

* `commitlog`: messages: the readable decoder and the fast one.
* `consumequeue_reader`, `index_reader`, `checkpoint_reader`, `config_reader`: the other files of a store.
* `settings`: broker.conf, and the sizes that the files themselves show.
"""

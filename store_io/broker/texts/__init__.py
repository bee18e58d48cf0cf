"""What a broker makes of the texts below config/, and how it writes them (config.md). No file is opened here.

* `fastjson`: a text as the release's parser reads it, also one that no broker writes.
* `values`: a value as the parser takes it for a field of some kind; `beans`: which fields the managers' objects have.
* `tables`: what is read -> topics, groups, offsets, delay offsets; what a manager refuses.
* `written`: tables as a release writes them.
"""

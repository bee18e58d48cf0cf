"""What several tests use.

* `stores`: written byte by byte, and the corpus of real ones.  `damage`: what is done to them.
* `second_witness`: what a broker does, written again from the documents.
* `answers`: what the product makes of a store.  `handmade`: evidence, outcomes and rows without a store.
* `delta_readers`: rows of a Delta table, counted by several readers.
* `processes`: servers, a browser, a cluster, audits that are killed.  `texts`: pages, JSON, golden files.
"""

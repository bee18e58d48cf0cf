"""What the metadata of a tiered store claims.

* `tiered_metadata`: the reader.
* `tiered_store`: the check.
"""

"""What the metadata of a tiered store claims.

* `tiered_store`: the reader of the metadata, and the check.
"""

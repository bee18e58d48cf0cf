"""The words for facts: what is known of a store as typed values becomes English here, and nowhere is it read again.

* `gaps`: why an audit is incomplete.
"""

"""The words for facts: what rules, checks and repairs say of a store as typed values becomes English here, and nowhere is it read.

* `gaps`: why an audit is incomplete.
"""

"""The words for facts: typed values become sentences here, and no code reads a sentence again.

* `refusals`: why a broker does not start.
"""

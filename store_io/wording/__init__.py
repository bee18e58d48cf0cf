"""The words for facts: typed values become sentences here, and no code reads a sentence again.

* `advice`: what to do next.
* `gaps`: why an audit is incomplete.
* `refusals`: why a broker does not start.
"""

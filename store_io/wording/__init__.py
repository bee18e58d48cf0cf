"""The words for facts: typed values become sentences here, and no code reads a sentence again.

* `gaps`: why an audit is incomplete.
* `refusals`: why a broker does not start.
* `steps`: what to do next.
"""

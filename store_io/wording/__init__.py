"""The words for facts: typed values become sentences here, and no code reads a sentence again.

* `gaps`: why an audit is incomplete.
* `not_whole`: what shows that a copy is not whole, and what to copy again.
* `refusals`: why a broker does not start.
* `steps`: what to do next.
"""

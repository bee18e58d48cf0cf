"""The groups of a copy's clients.

* `offset_rows`: how far consumer groups and delay levels have come, and the ends of their queues.
* `transaction_rows`: the half messages of producer groups; `transaction_ends`: what became of them.
"""

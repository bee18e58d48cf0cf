"""Which segments a question needs, so that the others are not read.

* `by_queues`: ConsumeQueue entries name the messages of a queue, and so their segments; entries that lead to no segment.
* `by_pieces`: tasks for segments, or for pieces of them.
* `by_tables`: what an earlier audit wrote of each segment's store times.
"""

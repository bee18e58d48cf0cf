"""The rules of the BROKER, release by release. Pure functions of summaries; each cites its Java method.

* `releases`: release and settings -> the rule set that all others take as an argument; `settings`: values of broker.conf.
* `texts`: the texts below config/ -> topics, groups and offsets.
* `message_verdict`, `header_faults`: one frame -> what the release's check says of it, and what the audit says.
* `index_keys`: one message -> the keys that it has in the index, and their hashes.
* `loading`: names and lengths -> the files that load() maps, or why it refuses; a queue's folder, topics like `../x` escaped.
* `queues`: the ConsumeQueues in the broker's memory; `index_state`: the index files there.
* `prediction`: the types of a fold: what was scanned, what it asks for, what the broker does.
* `start_segment`: where the recovery scan begins.
* `dispatch`: runs of segments -> entries of queues and index.
* `epochs`: the epochs of a replica in controller mode; `fenced_broker`: what controller mode adds to a start.
* `recovery`: the fold itself, summaries -> cut, states after load and after dispatch.
"""

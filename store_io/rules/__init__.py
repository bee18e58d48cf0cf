"""What the BROKER would do, release by release. Pure functions of summaries; each cites its Java method.

* `releases`: release and settings -> the rule set that all others take as an argument.
* `message_verdict`: one frame -> what the release's check says of it, and what the audit says.
* `loading`: names and lengths -> the files that load() maps, or why it refuses.
* `queue_state`: one ConsumeQueue in the broker's memory: recover, truncate, put, correctMinOffset.
* `index_state`: the index files in the broker's memory.
* `recovery`: summaries -> start segment, cut, states after load and after dispatch.
"""

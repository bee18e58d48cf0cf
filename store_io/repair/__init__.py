"""A new store from a damaged copy. The copy is never written to.

* `repair_store`: the repair, step by step; read it first.
* `repair_work`: what the steps share: the request, the writer, the runner of tasks.
* `repair_plan`: plan.json, read back and held against the copy.
* `repair_audit`: the audits of the copy and of the new store, and what the steps know of them.
* `repair_copy`: what the copy that is worked on holds; `copy_under_way`: copies it, and lets it be read meanwhile.
* `kind_repair`: the protocol of a kind's part; each is in the kind's room, and `kinds.all_repairs` lists them.
* `repair_start`: removes what keeps the release from starting.
* `log`: the CommitLog: where it ends, what is cut, zeroed, bridged, taken from a donor.
* `derived`: the round in which the kinds make their files anew, and the pass over the log that writes their entries.
* `repair_judge`: whether the new store is consistent.
* `repair_steps`: what was done, step by step, for the report and the dry run; `repair_report`: what NEW.repair.json
  says; `repair_documents`: writes both into their documents.
* `unsaved`: messages that the new store does not hold: counted for the report, and by name.
* `ways`: a repair by one policy, worked out; `proposals`: which of the two is recommended, with which options.
* `plan_repair_section`: that section, worked out by an audit.
* `writing`: where all of it is written, or in a dry run only remembered.
"""

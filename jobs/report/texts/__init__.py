"""The texts of a terminal, and the words that pages share with it.

* `judgement`, `next_steps`: the answer, what to do.
* `words`: of several stores, copies, releases; of each finding.
* `store_titles`: what people call a store.
* `deleted_files`, `finding_groups`: what a start deletes, what differs.
* `commands`: commands to paste.
* `summary_text`, `explain_text`, `query_text`, `history_text`, `tables_text`, `repair_text`: one per command.
* `step_text`: a step of a repair.
* `text`, `terminal`: values and escapes; colours and columns.
"""

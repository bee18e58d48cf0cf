"""What a terminal shows, and the words that pages share with it.

* `judgement`, `run_words`, `next_steps`: the answer, what is said of several stores together, what to do.
* `comparison_words`: several releases and settings beside one another.
* `deleted_files`, `finding_groups`, `replicas_words`: what a start deletes, what differs, how copies compare.
* `commands`: commands to paste.  `code_words`: what each finding and stop reason means.
* `summary_text`, `explain_text`, `query_text`, `history_text`, `tables_text`, `repair_text`: one per command.
* `step_text`: a step of a repair.
* `text`, `terminal`: values and escapes; colours and columns.
"""

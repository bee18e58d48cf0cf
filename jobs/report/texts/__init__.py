"""The texts of a terminal, and the words that pages share with it.

* `safety_text`, `next_steps`: the answer, what to do; `commands`, `master_commands`: commands to paste.
* `finding_words`, `step_words`: findings by code, and what a code means; a step of a repair, and what a start deletes.
* `comparison_words`, `run_words`: releases, settings and copies beside one another; several stores together, and their titles.
* `summary_text`, `rescue_text`, `explain_text`, `query_text`, `history_text`, `repair_text`: of the commands.
* `after_start_text`: whether a store is what was predicted.  `text`: values and escapes.
"""

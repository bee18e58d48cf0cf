"""What a terminal shows, and the words that pages share with it.

* `judgement`, `ranking`, `next_steps`, `deleted_files`, `replicas_words`: the answer, the order of stores, what to do.
* `commands`: commands to paste.
* `summary_text`, `explain_text`, `query_text`, `history_text`, `repair_text`: one per command.
* `text`, `terminal`: values and escapes; colours and columns.
"""

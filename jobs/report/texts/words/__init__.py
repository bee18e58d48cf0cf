"""Words that several commands and pages share.

* `code_words`: what each finding and stop reason means.
* `comparison_words`: several releases and settings beside one another.
* `replicas_words`: how copies of one log compare.
* `run_words`: what is said of several stores together.
"""

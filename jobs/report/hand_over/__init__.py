"""The texts of a rescue, and the page that is handed over with a new store.

* `rescue_text`: what each way of a rescue would keep and lose, and the one that is recommended.
* `words`: what was done, what could not be saved, what is to be done; shared by the terminal and the page.
* `hand_over_html`: the page.
"""

"""The additions of controller mode to a start: confirmOffset, epochs, and the effect of the controller's answer.

* `epochs`: the epochs that a broker holds, what an election does to them, where two copies of a group are the same.
* `confirm_offset`: how far a start dispatches, and what it leaves of the stored value.
* `compensation`: what load() reads after confirmOffset, and over what it throws.
* `election`: the fold once more, from the fenced broker to the master of the next epoch.
"""

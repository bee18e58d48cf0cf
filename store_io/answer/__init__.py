"""The one answer about a copy, and the list of steps: pure functions of an outcome. All that people read renders these.

* `answers`: which of the eight answers holds. `steps`: what to do, what can lose nothing first.
* `headline`: its headline and its reasons, in words.
* `day_steps`: conditions because of what a started broker does by itself.
* `repairs`: whether a repair goes and changes anything, and what to do if none does.
* `promotion`: what a copy needs before it serves as master.
"""

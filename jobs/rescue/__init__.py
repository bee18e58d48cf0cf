"""One command for a damaged copy: audit it, compare the ways to repair it, carry one out, hand it over. No rules here: what a
release does, what a repair does, which one is recommended and what is lost is known in `store_io`.

* `run_rescue`: the command; read it first.
* `first_look`: what is settled before any work: paths, space, release and settings.
* `hand_over`: the page and the files beside a new store, for `repair` too.
"""

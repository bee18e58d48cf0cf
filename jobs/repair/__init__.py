"""What `repair` and `rescue` share. No rules here: what a repair does is known in `store_io`.

* `first_look`: what is settled before any work: paths, space, release and settings.
* `hand_over`: the page and the files beside a new store.
"""

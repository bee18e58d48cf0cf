"""What `repair` and `rescue` share. No rules here: what a repair does is known in `store_io`.

* `repair_request`: the command line of a repair.
* `first_look`: what a rescue settles before any work: paths, space, release and settings.
* `disk_of_target`: how full the disk will be with the new store.
* `hand_over`: the page and the files beside a new store.
"""

"""The sections of a store's page: what each of them says. How it looks is under its key in templates/sections/.

* `segment_map` with `log_axis`, `watermarks`: the whole log as a bar with its axis, its segments; where it ends, and what lags.
* `lost_section`, `plan_section`: what a start loses, also of other releases; what it leaves, and what a repair does.
* `queues_section`, `timers_section`, `config_section`: queues and index, timers, `config/`.
* `findings_section`: what differs.
* `controller_section`, `replicas_section`: an election, other copies.
* `limits_section`: what was not read, and by which settings it was judged.
"""

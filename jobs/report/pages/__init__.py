"""HTML pages, each one file that loads nothing.

* `report_html`: one store; `index_html`, `fleet_html`: a run, all stores over time; `hand_over_page`: beside a new store.
* `segment_map`, `watermarks`: the whole log as a bar with its axis; where it ends, and what lags.
* `sections_on_outcome`: findings, losses, steps, copies, limits; `sections_on_kinds`: queues, timers, config, controller.
* `page`: what all share.
* templates/: how each of them looks, a section's under its key; the style sheet; tools.js, the filter and order of long tables.
"""

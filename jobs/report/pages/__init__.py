"""HTML pages, each one file that loads nothing.

* `report_html`: one store. Its sections: `lost_section`, `timers_section`, `segment_map` with `log_axis`, `watermarks`,
  `queues_section`, `config_section`, `findings_section`, `controller_section`, `replicas_section`, `plan_section`,
  `limits_section`.
* `index_html`, `fleet_html`: a run, all stores over time.
* `page`, `answer`: what they share.
* templates/: how each of them looks, a section's under its key; the style sheet; tools.js, the filter and order of long tables.
"""

"""HTML pages, each one file that loads nothing.

* `report_html`: one store, of `sections`.
* `index_html`, `fleet_html`: a run, all stores over time.
* `page`, `answer`: what they share.
* templates/: how each of them looks, a section's under its key; the style sheet; tools.js, the filter and order of long tables.
"""

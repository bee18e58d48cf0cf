"""HTML pages, each one file without a script from elsewhere.

* `report_html`: one store.
* `index_html`, `fleet_html`, `replicas_html`: a run, all stores over time, copies of one log.
* `segment_map`, `watermarks`: pictures.
* `page`, `report_style`: the frame and the style sheet.
"""

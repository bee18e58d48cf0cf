"""The tests; `builders`, `damage`, `strategies`, `corpus_tools` and `second_witness` are their tools."""

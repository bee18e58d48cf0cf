"""Pages, JSON, golden files and the project's own modules, as tests read them."""

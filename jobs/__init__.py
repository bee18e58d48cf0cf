"""WHERE it runs: Spark and Delta. No byte offsets, no magics."""

VERSION = "0.1.0"  # pyproject.toml's; it stands here too, because executors and cluster drivers have no pyproject.toml
RULES_VERSION = "2"  # of what is judged: goes up when the same bytes may be judged differently

"""WHERE it runs: Spark and Delta. No byte offsets, no magics."""

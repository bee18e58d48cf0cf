"""HOW bytes become rows. Pure Python, numpy, numba and pyarrow; read-only; no Spark."""

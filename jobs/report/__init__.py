"""Rendering only: rows in, text out. No Spark, no files, no decisions."""

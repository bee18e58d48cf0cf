"""Repaired, healed and rescued stores, and lost messages that are sent again."""

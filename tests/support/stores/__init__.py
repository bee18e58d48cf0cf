"""Stores written byte by byte: second witnesses of the formats. Damage: `tests.support.damage`."""

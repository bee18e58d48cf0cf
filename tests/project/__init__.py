"""Texts, imports and installation of the project as a whole."""

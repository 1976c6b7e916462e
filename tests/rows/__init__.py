"""Rows of every form: what is refused of them, and data on disk."""

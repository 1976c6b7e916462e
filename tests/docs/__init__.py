"""Pages are up to date, name what exists, and their examples run."""

"""Private evaluation: what one row changes, what is estimated, and what the books say."""

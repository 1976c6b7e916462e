"""A private look at the columns: its noise, its cost, what it shows and what it writes."""

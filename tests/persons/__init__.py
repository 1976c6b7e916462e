"""The person as the unit of privacy: all rows of one person together have the bound of a row."""

"""Mistakes that a program plants in the package, to show what catches them."""

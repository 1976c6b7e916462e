"""Measurements on real data, one module for each table: ``python -m experiments.NAME``."""

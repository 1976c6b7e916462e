"""Random parameters and inputs against every public entry point: ``python -m tests.fuzz -h``."""

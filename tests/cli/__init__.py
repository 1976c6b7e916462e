"""The command line, its files, and the doctor."""

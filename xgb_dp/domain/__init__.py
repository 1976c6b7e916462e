"""What rows may contain, as schema files, options and policies declare it.

Reads no row. The command line reads files by it, and a policy holds trainings to it.
"""

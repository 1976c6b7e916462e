"""A second, independent implementation of the private trainer, used only as an oracle in tests."""

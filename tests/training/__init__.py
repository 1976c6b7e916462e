"""Private training as a user calls it, and what the C++ side refuses by itself."""

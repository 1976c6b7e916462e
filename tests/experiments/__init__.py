"""What stands beside the library: published tables, the demo, the benchmarks."""

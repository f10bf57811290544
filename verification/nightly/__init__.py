"""The nightly run: all tests, and the programs that search for faults."""

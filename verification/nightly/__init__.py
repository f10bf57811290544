"""What runs every night: all tests, and the programs that search for faults."""

"""A program that runs tests with each supported version, and keeps the results."""

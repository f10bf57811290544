"""Wrong adapters, by their port: each breaks one promise, and a test of the port's suite fails.

A module of a port exports ``FAULTS``.
"""

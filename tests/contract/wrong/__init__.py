"""Wrong adapters, by their port: each breaks one promise, and a test of the port's suite fails.

A module of a port exports ``RIGHT``, its suite on an adapter without a fault that is made in the
same way, and ``WRONG``, the adapters with one.
"""

"""A deterministic simulator: one seed decides everything that happens in a schedule.

The package's own code runs unchanged, in virtual time, and one process at a time. Each of the
packages beside this one is a world for some of that code.
"""

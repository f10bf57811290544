"""Programs that search for faults: they run at night, or for as long as somebody wants.

The tests under ``tests/`` hold what the project promises; of these programs they run a few seconds.
"""

"""Measuring the lag of queries while they run."""

"""Descriptions of a cluster and its topics, and the doctor's findings."""

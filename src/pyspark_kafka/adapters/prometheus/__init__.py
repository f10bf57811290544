"""Metrics for Prometheus, with prometheus-client."""

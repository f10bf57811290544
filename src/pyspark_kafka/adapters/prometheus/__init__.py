"""Metrics for Prometheus, with the package prometheus-client."""

"""The composition root: the one place that names adapters and connects them with the use cases."""

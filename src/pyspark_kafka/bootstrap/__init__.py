"""The composition root: the only package that connects adapters with use cases."""

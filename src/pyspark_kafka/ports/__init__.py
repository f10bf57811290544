"""The interfaces that the use cases need and adapters implement."""

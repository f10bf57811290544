"""The use cases: what a stream and a batch do, over the ports alone."""

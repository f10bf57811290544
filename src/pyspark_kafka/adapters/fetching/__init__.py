"""Reading a range of offsets through a client that fetches."""

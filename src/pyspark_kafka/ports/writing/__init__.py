"""What writing needs of a client."""

"""What reading needs of a client."""

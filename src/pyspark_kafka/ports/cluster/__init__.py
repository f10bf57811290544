"""What the doctor and the list of topics need of a client."""

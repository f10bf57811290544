"""The files in which Java keeps keys and certificates, for the clients that are not Java's."""

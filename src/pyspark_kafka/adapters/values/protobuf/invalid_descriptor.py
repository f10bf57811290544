"""The error of descriptors and .proto texts that cannot be used."""


class InvalidDescriptorError(ValueError):
    """Descriptors are broken, incomplete, or do not have a message; says so to the user."""

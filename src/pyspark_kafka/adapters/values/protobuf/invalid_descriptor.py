"""The error of descriptors and .proto texts that cannot be used."""


class InvalidDescriptorError(ValueError):
    """Descriptors are broken, incomplete or lack a message; the message explains it to the user."""

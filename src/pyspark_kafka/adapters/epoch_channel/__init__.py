"""The connection between the driver of a continuous query and its tasks, over TCP.

Both sides prove that they hold the same key (``handshake``), and each frame after that is
authenticated (``frames``). Nothing is encrypted: the connection carries offsets, counts and the
texts of errors, never records or credentials.
"""

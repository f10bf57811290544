import gc
import select
import socket
import struct

import pytest

from pyspark_kafka.adapters.security.tls_context import PemFiles, ssl_context
from pyspark_kafka.domain.security.tls import Tls

RESET = struct.pack("ii", 1, 0)
"""What ``SO_LINGER`` takes to end a connection by a reset."""


def test_a_socket_whose_connection_was_reset_before_tls_is_closed():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connected = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        accepted.close()
        connected.setblocking(False)
        assert select.select([connected], [], [], 10)[0]
        with pytest.raises(ConnectionResetError):
            ssl_context(Tls(), PemFiles()).wrap_socket(
                connected, server_hostname="broker", do_handshake_on_connect=False
            )
    gc.collect()

"""An ``SSLContext`` with the content of Java's stores, which is made again when they change."""

from __future__ import annotations

import errno
import logging
import os
import ssl
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar, final

from ...domain.errors import PysparkKafkaError
from ...domain.security.secrets import Secret, without_secrets
from ...domain.security.tls import TLS_1_2, TLS_1_3, Store, Tls
from .memory_files import memory_file
from .store_files import KeyPair, certificates, key_pair, read_file, unreadable

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Mapping


_VERSIONS: Final = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}

_NOT_CONNECTED: Final = (errno.ENOTCONN, errno.EINVAL)
"""The errors that ``SSLSocket._create`` expects of a socket that is yet to be connected."""

_KEY: Final = (
    "Option '{}': the private key cannot be used; check that it belongs to the first certificate, "
    "and 'kafka.ssl.key.password'"
)
_NO_CERTIFICATE: Final = "Option '{}' holds no certificate that can be used"


@final
@dataclass(frozen=True, slots=True)
class PemFiles:
    """Files of librdkafka's and kafka-python's own settings, one for each purpose."""

    authorities: str = ""
    certificate: str = ""
    key: str = ""
    revoked: str = ""


PEM_SETTINGS: Final[Mapping[str, str]] = {
    "ssl.ca.location": "authorities",
    "ssl.certificate.location": "certificate",
    "ssl.crl.location": "revoked",
    "ssl.key.location": "key",
}
"""librdkafka's settings of files, and the fields of ``PemFiles``."""


def pem_files(settings: Mapping[str, str]) -> PemFiles:
    """Return the files that settings name."""
    return PemFiles(
        **{PEM_SETTINGS[name]: settings[name] for name in PEM_SETTINGS.keys() & settings.keys()}
    )


def file_paths(tls: Tls, files: PemFiles) -> list[str]:
    """Return all files of certificates and keys."""
    stores = [store.location for store in (tls.truststore, tls.keystore) if store]
    paths = (*stores, files.authorities, files.certificate, files.key, files.revoked)
    return [path for path in paths if path]


@final
class TlsSocket(ssl.SSLSocket):
    """Closes itself if its connection was reset before TLS begins.

    ``SSLSocket._create`` looks for that with ``recv``, and leaves the socket to the garbage
    collector.
    """

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Receive as ``SSLSocket.recv``."""
        try:
            return super().recv(buflen, flags)
        except OSError as error:
            if self.version() is None and error.errno not in _NOT_CONNECTED:
                self.close()
            raise


@final
class CurrentContext:
    """Replaces an ``SSLContext`` in kafka-python; a new connection has the current files."""

    def __init__(self, tls: Tls, files: PemFiles) -> None:
        """Read the files; raise as ``ssl_context``."""
        self._context = Rotating(file_paths(tls, files), partial(ssl_context, tls, files))

    @property
    def context(self) -> ssl.SSLContext:
        """The context of the next connection."""
        return self._context.current()

    def wrap_socket(
        self, sock: socket.socket, *, server_hostname: str | None, do_handshake_on_connect: bool
    ) -> ssl.SSLSocket:
        """Wrap a new connection's socket, as ``SSLContext.wrap_socket``."""
        return self.context.wrap_socket(
            sock,
            server_hostname=server_hostname,
            do_handshake_on_connect=do_handshake_on_connect,
        )


def ssl_context(tls: Tls, files: PemFiles) -> ssl.SSLContext:
    """Return a context with the content of all files.

    :raises ValueError: if a file cannot be read, naming its option.
    :raises MissingDependencyError: if a store is PKCS12, which the extra ``tls`` reads.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = TlsSocket
    versions = sorted(_VERSIONS[version] for version in tls.versions)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    context.check_hostname = tls.checks_hostname
    if tls.ciphers:
        try:
            context.set_ciphers(tls.ciphers)
        except ssl.SSLError as error:
            raise ValueError(
                "Option 'kafka.ssl.cipher.suites' names no suite that OpenSSL has here"
            ) from error
    _load_authorities(context, tls.truststore, files)
    if files.certificate:
        pair = _file_pair(files, tls.key_password)
        _load_key(context, pair, _CHAIN_FILE, _KEY_FILE if files.key else _CHAIN_FILE)
    if tls.keystore:
        pair = key_pair(tls.keystore, tls.key_password)
        _load_key(context, pair, tls.keystore.chain_option, tls.keystore.option)
    return context


def _load_authorities(context: ssl.SSLContext, store: Store | None, files: PemFiles) -> None:
    if files.authorities:
        _load(context, "ssl.ca.location", files.authorities)
    if files.revoked:
        _load(context, "ssl.crl.location", files.revoked)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if store:
        # As in Java, any certificate in a truststore is trusted, not only self-signed ones.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(cadata=certificates(store))
        except (ssl.SSLError, TypeError) as error:
            # A TypeError, if the text is not ASCII.
            raise ValueError(_NO_CERTIFICATE.format(store.option)) from error
    elif not files.authorities:
        context.load_default_certs()


def _load(context: ssl.SSLContext, name: str, location: str) -> None:
    option = f"kafka.{name}"
    if Path(location).is_dir():
        context.load_verify_locations(capath=location)
        return
    with memory_file(read_file(option, location)) as path:
        try:
            context.load_verify_locations(cafile=path)
        except OSError as error:
            raise unreadable(option, location, error) from error


_CHAIN_FILE: Final = "kafka.ssl.certificate.location"
_KEY_FILE: Final = "kafka.ssl.key.location"


def _file_pair(files: PemFiles, password: Secret) -> KeyPair:
    chain = read_file(_CHAIN_FILE, files.certificate).decode(errors="replace")
    # As in OpenSSL, one file may hold both.
    key = read_file(_KEY_FILE, files.key).decode(errors="replace") if files.key else chain
    return KeyPair(Secret(key), chain, password)


def _load_key(context: ssl.SSLContext, pair: KeyPair, chain_option: str, key_option: str) -> None:
    # OpenSSL reads keys from paths only.
    with ExitStack() as stack:
        chain = stack.enter_context(memory_file(pair.chain.encode()))
        key = stack.enter_context(memory_file(pair.key.encode()))
        try:
            # Without a password OpenSSL would prompt for one on the terminal.
            context.load_cert_chain(chain, key, str(pair.password))
        except (OSError, ValueError) as error:
            is_usable = _has_certificates(pair.chain)
            problem = _KEY.format(key_option) if is_usable else _NO_CERTIFICATE.format(chain_option)
            raise ValueError(problem) from error


def _has_certificates(pem: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, TypeError, ValueError):
        return False
    return True


T = TypeVar("T")

FileVersion: TypeAlias = tuple[int, int, int, int] | None
"""The device, inode, size and time (ns) of a file; ``None`` if there is none."""

log = logging.getLogger("pyspark_kafka")


@final
class Rotating(Generic[T]):
    """A value made from files, and made again once one of them has changed.

    Files are not replaced all at once: while they cannot be used, or do not belong together, the
    last value stays.
    """

    def __init__(self, files: Collection[str], make: Callable[[], T]) -> None:
        """Make the value; raise as ``make`` does.

        ``make`` raises ``ValueError`` or ``PysparkKafkaError`` if the files cannot be used.
        """
        self._files = tuple(files)
        self._make = make
        # Before they are read, so that no later change is missed.
        self._versions = self._logged = self._found()
        self._value = make()

    def current(self) -> T:
        """Return the value of the current files, or the last one if they cannot be used yet."""
        found = self._found()
        if found != self._versions:
            try:
                self._value = self._make()
            except (ValueError, PysparkKafkaError) as error:
                self._log(found, error)
            else:
                self._versions = found
        return self._value

    def _found(self) -> tuple[FileVersion, ...]:
        return tuple(map(file_version, self._files))

    def _log(self, found: tuple[FileVersion, ...], error: Exception) -> None:
        if found != self._logged:
            self._logged = found
            log.warning(
                "The files of TLS have changed and cannot be used; new connections use what was "
                "read before until they are changed again: %s",
                without_secrets(str(error)),
            )


def file_version(path: str) -> FileVersion:
    """Return a value that changes with a file's content; links are followed."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

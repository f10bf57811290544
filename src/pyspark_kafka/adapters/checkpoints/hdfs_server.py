"""A server of HDFS: its address, the logins that it takes, and its TLS."""

from __future__ import annotations

import base64
import getpass
import os
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from ...domain.errors import requires_extra
from ..security.tls_context import Rotating

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsServer:
    """A NameNode or a gateway, by the options of fsspec's ``WebHDFS``.

    The default port and user are those of Hadoop 3's clients.
    """

    host: str
    port: int = 9870
    use_https: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    proxy_to: str = ""
    kerberos: bool = False
    kerb_kwargs: Mapping[str, str] = field(default_factory=dict)
    """The ``principal`` and the ``hostname_override`` of a login by Kerberos."""

    data_proxy: Mapping[str, str] = field(default_factory=dict)
    """Parts of URLs, and their replacements."""

    session_cert: str | Sequence[str] = ()
    """The file of a certificate, or that file and the file of its key."""

    session_verify: bool | str = True
    """Whether to verify the server, or the file of certificates to trust."""

    def __post_init__(self) -> None:
        logins = (self.kerberos, bool(self.token), bool(self.user))
        if sum(logins) > 1 or (self.password and not self.user):
            raise ValueError("log in by 'user' and 'password', by 'token' or by 'kerberos'")

    @property
    def url(self) -> str:
        """The root of the files."""
        return f"{'https' if self.use_https else 'http'}://{self.host}:{self.port}/webhdfs/v1"

    def parameters(self) -> dict[str, str]:
        """Return the parameters of all operations: the user, and the user to act for."""
        if self.token:
            return {"delegation": self.token}
        is_named = not (self.password or self.kerberos)
        user = {"user.name": self.user or _default_user()} if is_named else {}
        return user | ({"doas": self.proxy_to} if self.proxy_to else {})

    @property
    def logs_in(self) -> bool:
        """Whether ``login`` returns headers."""
        return self.kerberos or bool(self.password)

    def login(self) -> dict[str, str]:
        """Return the headers that log in."""
        if self.kerberos:
            return {"Authorization": f"Negotiate {_ticket(self.host, **self.kerb_kwargs)}"}
        if self.password:
            return {"Authorization": f"Basic {_base64(f'{self.user}:{self.password}'.encode())}"}
        return {}

    def replaced(self, url: str) -> str:
        """Return the URL by which another one is reached, by ``data_proxy``."""
        for old, new in self.data_proxy.items():
            url = url.replace(old, new, 1)
        return url

    def tls(self) -> Rotating[ssl.SSLContext]:
        """Return the TLS of connections, which follows its files.

        :raises ValueError: if they cannot be used.
        """
        given = self.session_cert
        pair = (given,) if isinstance(given, str) else tuple(given)
        trusted = self.session_verify if isinstance(self.session_verify, str) else None

        def make() -> ssl.SSLContext:
            try:
                context = ssl.create_default_context(cafile=trusted)
                if pair:
                    context.load_cert_chain(*pair)
            except OSError as error:
                raise ValueError(
                    f"'session_cert' or 'session_verify' is unusable: {error}"
                ) from None
            if not self.session_verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            return context

        return Rotating((*pair, trusted) if trusted else pair, make)


def _ticket(host: str, principal: str = "", hostname_override: str = "") -> str:
    """Return the message of a login by SPNEGO, by this process's ticket (RFC 4559)."""
    with requires_extra("kerberos", "gssapi", "The package for Kerberos"):
        import gssapi
    service = gssapi.Name(f"HTTP@{hostname_override or host}", gssapi.NameType.hostbased_service)
    user = gssapi.Name(principal, gssapi.NameType.kerberos_principal) if principal else None
    context = gssapi.SecurityContext(
        name=service,
        creds=gssapi.Credentials(name=user, usage="initiate"),
        mech=gssapi.OID.from_int_seq("1.3.6.1.5.5.2"),
        usage="initiate",
    )
    return _base64(context.step() or b"")


def _base64(text: bytes) -> str:
    return base64.b64encode(text).decode()


def _default_user() -> str:
    try:
        return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    except (KeyError, OSError) as error:
        # The system has no name for the number, as in a container that runs as some user id.
        raise OSError("this process's user has no name: set HADOOP_USER_NAME") from error

"""A directory of HDFS, over WebHDFS or HttpFS."""

from __future__ import annotations

import getpass
import os
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import quote

from .file_names import temporary_name
from .log_directory import LogDirectory, LogFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from fsspec.implementations.webhdfs import WebHDFS
    from requests import Response

_PORT: Final = 9870  # of a NameNode's HTTP server since Hadoop 3; fsspec's is that of Hadoop 2
_SECONDS: Final = 60.0
_KINDS: Final[dict[str, type[OSError]]] = {
    "AccessControlException": PermissionError,
    "SecurityException": PermissionError,
    "FileNotFoundException": FileNotFoundError,
    "FileAlreadyExistsException": FileExistsError,
}


def webhdfs_options(options: dict[str, Any]) -> dict[str, Any]:
    """Add what Hadoop's clients take for granted: the port, and the user of this process."""
    known = {"port": _PORT, **options}
    if not known.keys() & {"user", "token", "kerberos"}:
        known["user"] = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return known


@final
class HdfsDirectory(LogDirectory):
    """Files that are written aside, and given their name by a rename that does not replace.

    fsspec makes the session, with its means of authentication, and the requests are made here:
    its ``mv`` drops the server's answer, its ``cat_file`` takes an error for the content, and
    none of its calls ends if the server never answers.
    """

    def __init__(self, filesystem: WebHDFS, path: str) -> None:
        self._filesystem = filesystem
        self._path = path.rstrip("/")

    def create(self, name: str, content: bytes) -> bool:
        if self._exists(name):
            return False
        aside = temporary_name(name)
        renamed = False
        try:
            self._write(aside, content)
            renamed = self._rename(aside, name)
        finally:
            if not renamed:
                with suppress(OSError):
                    self._delete(aside)
        return renamed

    def read(self, name: str) -> bytes | None:
        try:
            answer = self._ask("GET", "OPEN", name)
            if "Location" in answer.headers:
                answer = self._follow("GET", answer)
        except FileNotFoundError:
            return None
        content: bytes = answer.content
        return content

    def files(self) -> Iterator[LogFile]:
        try:
            answer = self._ask("GET", "LISTSTATUS", "")
        except FileNotFoundError:
            return
        for status in answer.json()["FileStatuses"]["FileStatus"]:
            if status["type"] == "FILE":
                yield LogFile(status["pathSuffix"], status["modificationTime"] / 1000)

    def remove(self, names: Collection[str]) -> None:
        for name in names:
            self._delete(name)

    def _exists(self, name: str) -> bool:
        try:
            self._ask("GET", "GETFILESTATUS", name)
        except FileNotFoundError:
            return False
        return True

    def _write(self, name: str, content: bytes) -> None:
        self._follow("PUT", self._ask("PUT", "CREATE", name, overwrite="false"), content)

    def _rename(self, source: str, target: str) -> bool:
        destination = f"{self._path}/{target}"
        try:
            # With options it is FileContext's rename, which Spark uses: without them it would
            # move the file into a directory of that name. HttpFS does not know the options.
            answer = self._ask(
                "PUT", "RENAME", source, destination=destination, renameoptions="NONE"
            )
        except FileExistsError:
            return False
        if not answer.content or answer.json().get("boolean", True):
            return True
        if self._exists(target):
            return False
        raise OSError(f"HDFS did not rename '{source}' to '{target}', and does not say why")

    def _delete(self, name: str) -> None:
        self._ask("DELETE", "DELETE", name)

    def _ask(self, method: str, operation: str, name: str, **parameters: str) -> Response:
        path = f"{self._path}/{name}" if name else self._path or "/"
        url = f"{self._filesystem.url}{quote(path)}"
        return self._send(
            method, url, params={"op": operation, **parameters, **self._filesystem.pars}
        )

    def _follow(self, method: str, answer: Response, content: bytes | None = None) -> Response:
        """Go where the NameNode points to, for content."""
        headers = {"Content-Type": "application/octet-stream"}
        return self._send(method, answer.headers["Location"], data=content, headers=headers)

    def _send(self, method: str, url: str, **request: Any) -> Response:
        url = self._filesystem._apply_proxy(url)  # noqa: SLF001 - the option data_proxy
        answer: Response = self._filesystem.session.request(
            method, url, allow_redirects=False, timeout=_SECONDS, **request
        )
        if answer.status_code >= HTTPStatus.BAD_REQUEST:
            raise _failure(answer)
        return answer


def _failure(answer: Response) -> OSError:
    """Read the exception that a server of Hadoop gives as JSON, or else the status."""
    try:
        remote = answer.json()["RemoteException"]
        name, message = remote["exception"], remote["message"]
    except (ValueError, KeyError, TypeError):
        name, message = "", f"HTTP {answer.status_code} {answer.reason}"
    if answer.status_code == HTTPStatus.UNAUTHORIZED:
        return PermissionError(message)
    kind = _KINDS.get(name)
    return kind(message) if kind else OSError(f"{name}: {message}" if name else message)

"""The address of a server: a host, and a free port."""

import errno
import ipaddress
import socket
from collections.abc import Iterator
from typing import Literal

from stepglass.errors import ConfigError, os_reason

LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})  # as a browser writes them
FIRST_PORT = 8770
NUM_PORTS = 20
BACKLOG = 64


def is_loopback(host: str) -> bool:
    """Can only this machine connect to the host?

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "box.lan")]
    [True, True, True, False, False]
    """
    return host == "localhost" or _has_property(host, "is_loopback")


def is_wildcard(host: str) -> bool:
    """Does the host mean all addresses of this machine, like 0.0.0.0?"""
    return _has_property(host, "is_unspecified")


def _has_property(host: str, name: str) -> bool:
    try:
        return bool(getattr(ipaddress.ip_address(host), name))
    except ValueError:
        return False


def names_of(host: str) -> frozenset[str]:
    """The host names that a browser may use for this server."""
    own = socket.gethostname() if is_wildcard(host) else host
    return LOCAL_NAMES | {_bracketed(own).lower()}


def url(host: str, port: int, token: str | None) -> str:
    """
    >>> url("localhost", 8770, None), url("::1", 8770, "abc")
    ('http://127.0.0.1:8770/', 'http://[::1]:8770/?token=abc')
    """
    if is_wildcard(host):
        host = socket.gethostname()
    name = "127.0.0.1" if host == "localhost" else _bracketed(host)
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def listen(host: str, port: int | Literal["auto"]) -> list[socket.socket]:
    """Open listening sockets, all on the same port. Raises ConfigError."""
    addresses = _addresses(host)
    for number in _ports(port):
        try:
            return _open_sockets(addresses, number)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port == "auto":
                continue
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                reason = "is taken" if error.errno == errno.EADDRINUSE else os_reason(error)
                raise ConfigError(
                    f"--port={number}: {reason}; choose another, or leave --port out to get a "
                    f"free one"
                ) from error
            raise ConfigError(
                f"--host={host}: cannot listen there: {os_reason(error)}; expected an address of "
                f"this machine"
            ) from error
    raise ConfigError("no port is free; end something that listens")


def _addresses(host: str) -> list[str]:
    if host in ("127.0.0.1", "localhost"):
        return ["127.0.0.1", "::1"]  # a browser may resolve `localhost` to either
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "not a host's name"
        raise ConfigError(
            f"--host={host}: {reason}; expected a name or an address of this machine"
        ) from error
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


def _ports(port: int | Literal["auto"]) -> Iterator[int]:
    if port != "auto":
        yield port
        return
    yield from range(FIRST_PORT, FIRST_PORT + NUM_PORTS)
    for _ in range(5):  # the port that the system picks for IPv4 may be taken on IPv6
        yield 0


def _open_sockets(addresses: list[str], port: int) -> list[socket.socket]:
    """Open one socket per address. IPv6 is skipped if the machine has none."""
    sockets: list[socket.socket] = []
    try:
        for address in addresses:
            try:
                sockets.append(_listening(address, port))
            except OSError as error:
                if not sockets or error.errno == errno.EADDRINUSE:
                    raise
            port = sockets[0].getsockname()[1]
    except BaseException:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def _listening(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # Windows would let two programs share a port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((address, port))
        sock.listen(BACKLOG)  # now: two programs may bind a port, but only one can listen
    except BaseException:
        sock.close()
        raise
    return sock

"""Access control of our servers. It checks every request before anything else.

A web site can make its visitor's browser send requests to 127.0.0.1, and can point its own domain
name at that address (DNS rebinding). Other people may also have accounts on this machine. So the
guard accepts only our own names as Host, only the methods it is told (for a page: GET and HEAD), no
requests from scripts of other sites, and only URL paths of a known form (none is a file path). It
requires a secret token if somebody else could connect. Every response, including errors, tells the
browser to run only our own script.

Starlette's TrustedHostMiddleware is not used: it answers 400 and takes part of [::1] for a port.
"""

import logging
import re
import secrets
from dataclasses import dataclass

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stepglass.web.address import LOCAL_NAMES

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}
MAX_TARGET_BYTES = 2048  # path and query
MAX_HEAD_BYTES = 16_384  # all headers; uvicorn limits only those that arrive in several pieces

_HOST = re.compile(rb"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
# All our URL paths match this pattern, and no spelling of `..` does.
_PATH = re.compile(rb"/|(?:/[a-z0-9]+)+(?:\.[a-z]+)?")
_DROPPED_HEADERS = (b"content-security-policy", b"server", b"cache-control")

logger = logging.getLogger(__name__)


class Key:
    """The secret that gives access to the server while it runs."""

    def __init__(self, port: int) -> None:
        # Browsers send a cookie to all ports of a host, so each server needs its own name.
        self.cookie = f"stepglass_{port}"
        self.token = secrets.token_urlsafe(16)  # 128 bits
        self._once: str | None = None

    def once(self) -> str:
        """A token that works only once, for a browser that we start. Other users can see the
        browser's command line, so the permanent token must not be in it."""
        self._once = secrets.token_urlsafe(16)
        return self._once

    def opens(self, token: bytes) -> bool:
        if self._once is not None and secrets.compare_digest(token, self._once.encode()):
            self._once = None
            return True
        return self.is_token(token)

    def is_token(self, token: bytes) -> bool:
        return secrets.compare_digest(token, self.token.encode())


@dataclass(frozen=True)
class AccessRules:
    """What the guard lets through."""

    hosts: frozenset[str] = LOCAL_NAMES
    allows_own_address: bool = False  # accept the IP address of this machine as Host
    key: Key | None = None
    methods: tuple[str, ...] = ("GET", "HEAD")


class Guard:
    """Refuses a request or passes it on, and adds security headers to every response."""

    def __init__(self, app: ASGIApp, rules: AccessRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "websockets and lifespan are off"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [
                    pair for pair in message["headers"] if pair[0].lower() not in _DROPPED_HEADERS
                ]
                ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": kept + ours}
            await send(message)

        try:
            answer = self._refusal(scope) or self._app
            await answer(scope, receive, send_with_headers)
        except Exception:
            logger.exception("the server has a bug")  # uvicorn's own log is off
            raise

    def _refusal(self, scope: Scope) -> Response | None:
        """The response to a request that must be refused, or None if it may pass."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if not self._is_own_host(_values(headers, b"host"), scope):
            return _text(403, "this server answers only at the address that `stepglass` printed")
        if scope["method"] not in self._rules.methods:
            allowed = ", ".join(self._rules.methods)
            answer = _text(405, f"this server answers only {allowed}")
            answer.headers["allow"] = allowed
            return answer
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_TARGET_BYTES:
            return _text(414, "this address is too long")
        if sum(len(name) + len(value) for name, value in headers) > MAX_HEAD_BYTES:
            return _text(431, "these headers are too long")
        if _is_by_another_site(headers):
            return _text(403, "this server is not for other sites")
        if scope["method"] == "POST" and not _is_json(headers):
            # A site can make a browser send a form or a plain text without asking us first.
            return _text(415, "expected Content-Type: application/json")
        if not _PATH.fullmatch(scope["raw_path"]):
            return _text(404, "there is nothing here")
        return self._check_key(scope, headers) if self._rules.key else None

    def _is_own_host(self, hosts: list[bytes], scope: Scope) -> bool:
        match = _HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
        if match is None:
            return False
        name = match[1].decode()
        if name in self._rules.hosts:
            return True
        # An attacker can point a domain name at this machine, but the Host is then that name and
        # not the IP address.
        return self._rules.allows_own_address and name.strip("[]") == scope["server"][0]

    def _check_key(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> Response | None:
        key = self._rules.key
        assert key is not None
        if any(key.is_token(token) for token in _bearers(headers)):
            return None
        given = _parts(scope["query_string"], b"&", b"token")
        if any(key.opens(token) for token in given):
            # Redirect to a URL without the secret, because people copy and bookmark URLs.
            answer = RedirectResponse(scope["raw_path"].decode(), status_code=303)
            answer.set_cookie(key.cookie, key.token, httponly=True, samesite="strict")
            return answer
        cookies = b";".join(_values(headers, b"cookie"))
        if any(key.is_token(token) for token in _parts(cookies, b";", key.cookie.encode())):
            return None
        what = "this token is of another server" if given else "this server needs its token"
        return _text(403, f"{what}: open the whole address that `stepglass` printed")


def _text(status: int, line: str) -> Response:
    return PlainTextResponse(line + "\n", status)


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key == name]


def _parts(text: bytes, separator: bytes, name: bytes) -> list[bytes]:
    """All values of a name in a list like `a=1; b=2`.

    >>> _parts(b"a=1; b=2;a=3", b";", b"a")
    [b'1', b'3']
    """
    pairs = [part.strip().partition(b"=") for part in text.split(separator)]
    return [value for key, _, value in pairs if key == name]


def _bearers(headers: list[tuple[bytes, bytes]]) -> list[bytes]:
    """The tokens in a program's `Authorization: Bearer ...`."""
    found = (value.partition(b" ") for value in _values(headers, b"authorization"))
    return [token.strip() for scheme, _, token in found if scheme.lower() == b"bearer"]


def _is_json(headers: list[tuple[bytes, bytes]]) -> bool:
    kinds = _values(headers, b"content-type")
    return len(kinds) == 1 and kinds[0].partition(b";")[0].strip().lower() == b"application/json"


def _is_by_another_site(headers: list[tuple[bytes, bytes]]) -> bool:
    """Does the browser say that a script, image or frame of another site (or of another port of
    this host) sends the request? Links that a person clicks are allowed on any site."""
    sites = _values(headers, b"sec-fetch-site")
    if all(site in (b"same-origin", b"none") for site in sites):
        return False
    is_link = _values(headers, b"sec-fetch-mode") == [b"navigate"]
    return not (is_link and _values(headers, b"sec-fetch-dest") == [b"document"])

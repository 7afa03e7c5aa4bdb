"""Who may ask the live page for what, checked on every request before anything else.

A page of another site can make its visitor's browser call 127.0.0.1, and give its own name that
address (DNS rebinding); other people may have accounts here. So the guard lets through only our own
names as Host, only GET and HEAD, nothing for scripts of other sites, only addresses of a shape we
use (none is ever a file's path), and asks for a secret where somebody else could call. Every
answer, errors too, tells the browser to run nothing but our own script.

Starlette's TrustedHostMiddleware answers 400 and cannot tell [::1] from a port, so we have our own.
"""

import logging
import re
import secrets
from dataclasses import dataclass

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stepglass.watch.address import LOCAL_NAMES

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
MAX_TARGET_BYTES = 2048  # of path and query
MAX_HEAD_BYTES = 16_384  # of all headers; uvicorn bounds only those that arrive in pieces

_HOST = re.compile(rb"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
# Every address of ours matches this, and no spelling of `..` does.
_PATH = re.compile(rb"/|(?:/[a-z0-9]+)+(?:\.[a-z]+)?")
_BARRED = (b"content-security-policy", b"server", b"cache-control")

logger = logging.getLogger(__name__)


class Key:
    """The secret that opens the page for as long as the server lives."""

    def __init__(self, port: int) -> None:
        # Browsers send a cookie to every port of a host: two servers must not share a name.
        self.cookie = f"stepglass_{port}"
        self.token = secrets.token_urlsafe(16)  # 128 bits
        self._once: str | None = None

    def once(self) -> str:
        """A token that opens the page a single time, for a browser that we start: everybody can
        read its command line."""
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
    allows_own_address: bool = False  # the address of this machine at which a call arrives
    key: Key | None = None


class Guard:
    """Refuses a request or passes it on, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, rules: AccessRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "websockets and lifespan are off"

        async def send_dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0].lower() not in _BARRED]
                ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": kept + ours}
            await send(message)

        try:
            answer = self._refusal(scope) or self._app
            await answer(scope, receive, send_dressed)
        except Exception:
            logger.exception("the live page has a bug")  # uvicorn's own log is off
            raise

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that is not passed on."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if not self._is_for_us(_values(headers, b"host"), scope):
            return _text(403, "this page answers only at the address that `stepglass` printed")
        if scope["method"] not in ("GET", "HEAD"):
            answer = _text(405, "this page is only for looking: GET and HEAD")
            answer.headers["allow"] = "GET, HEAD"
            return answer
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_TARGET_BYTES:
            return _text(414, "this address is too long")
        if sum(len(name) + len(value) for name, value in headers) > MAX_HEAD_BYTES:
            return _text(431, "these headers are too long")
        if _is_by_another_site(headers):
            return _text(403, "this page is not for other sites")
        if not _PATH.fullmatch(scope["raw_path"]):
            return _text(404, "there is nothing here")
        return self._without_key(scope, headers) if self._rules.key else None

    def _is_for_us(self, hosts: list[bytes], scope: Scope) -> bool:
        match = _HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
        if match is None:
            return False
        name = match[1].decode()
        if name in self._rules.hosts:
            return True
        # Somebody can point a name of theirs at this machine, but cannot choose its address.
        return self._rules.allows_own_address and name.strip("[]") == scope["server"][0]

    def _without_key(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> Response | None:
        key = self._rules.key
        assert key is not None
        given = _parts(scope["query_string"], b"&", b"token")
        if any(key.opens(token) for token in given):
            # Redirect to an address without the secret: this one could be copied or bookmarked.
            answer = RedirectResponse(scope["raw_path"].decode(), status_code=303)
            answer.set_cookie(key.cookie, key.token, httponly=True, samesite="strict")
            return answer
        cookies = b";".join(_values(headers, b"cookie"))
        if any(key.is_token(token) for token in _parts(cookies, b";", key.cookie.encode())):
            return None
        what = "this token is of another server" if given else "this page needs its token"
        return _text(403, f"{what}: open the whole address that `stepglass` printed")


def _text(status: int, line: str) -> Response:
    return PlainTextResponse(line + "\n", status)


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key == name]


def _parts(text: bytes, separator: bytes, name: bytes) -> list[bytes]:
    """The values of one name in `a=1; b=2`.

    >>> _parts(b"a=1; b=2;a=3", b";", b"a")
    [b'1', b'3']
    """
    pairs = [part.strip().partition(b"=") for part in text.split(separator)]
    return [value for key, _, value in pairs if key == name]


def _is_by_another_site(headers: list[tuple[bytes, bytes]]) -> bool:
    """Does the browser say that a script, an image or a frame of another site asks, or of another
    port of this host? A link that a person follows is allowed, wherever it stands."""
    sites = _values(headers, b"sec-fetch-site")
    if all(site in (b"same-origin", b"none") for site in sites):
        return False
    is_link = _values(headers, b"sec-fetch-mode") == [b"navigate"]
    return not (is_link and _values(headers, b"sec-fetch-dest") == [b"document"])

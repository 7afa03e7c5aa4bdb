"""The routes of `stepglass serve`: OpenAI's /v1/completions, /v1/chat/completions and /v1/models.

A request with `"stream": true` is answered with server-sent events, one for each piece of text.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from stepglass.sample.load import Sampler
from stepglass.serve.asked import Asked, BadRequest, read_asked
from stepglass.serve.worker import News, TextWorker, TooBusy

MAX_BODY_BYTES = 1 << 20
BODY_TIMEOUT_S = 10.0
TICK_S = 0.5  # how often a stream without news looks whether the server stops

Numbered = tuple[int, News]


class OpenAIApp:
    """Handles requests. Setting `stopping` ends the streams."""

    def __init__(
        self, name: str, loaded: Sampler, worker: TextWorker, stopping: asyncio.Event
    ) -> None:
        self._name = name
        self._loaded = loaded
        self._worker = worker
        self._stopping = stopping
        self._created = int(time.time())

    def starlette(self) -> Starlette:
        """The Starlette app with all routes."""
        routes = [
            Route("/v1/models", self._list_models, methods=["GET"]),
            Route("/v1/completions", self._complete, methods=["POST"]),
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
        ]
        app = Starlette(routes=routes)
        app.router.redirect_slashes = False
        return app

    async def _list_models(self, request: Request) -> Response:
        model = {"id": self._name, "object": "model", "created": self._created}
        return JSONResponse({"object": "list", "data": [{**model, "owned_by": "stepglass"}]})

    async def _complete(self, request: Request) -> Response:
        return await self._answer(request, is_chat=False)

    async def _chat(self, request: Request) -> Response:
        return await self._answer(request, is_chat=True)

    async def _answer(self, request: Request, is_chat: bool) -> Response:
        try:
            body = await asyncio.wait_for(_json_body(request), BODY_TIMEOUT_S)
            block_size = self._loaded.model.config.block_size
            asked = read_asked(body, self._loaded.tokenizer, is_chat, block_size)
            answer = _Answer(asked, self._name)
            news = self._news(asked)
            if asked.is_streamed:
                first = await anext(news)  # so that a refusal has its own status
                return StreamingResponse(
                    answer.events(_with_first(first, news)), media_type="text/event-stream"
                )
            return await answer.whole(news)
        except BadRequest as error:
            return _error(400, str(error), error.param)
        except TooBusy:
            return _error(429, "too many requests are waiting already; try again later")
        except (TimeoutError, ClientDisconnect):
            return _error(408, f"the request did not arrive within {BODY_TIMEOUT_S:g} s")

    async def _news(self, asked: Asked) -> AsyncIterator[Numbered]:
        """What the worker says, until all texts have ended or the server stops. If nobody wants
        to hear it any more, the worker stops as well."""
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[Numbered]()

        def tell(number: int, news: News) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, (number, news))

        tickets = self._worker.ask(asked.wanted, tell)
        try:
            num_open = len(tickets)
            while num_open and not self._stopping.is_set():
                try:
                    number, news = await asyncio.wait_for(queue.get(), TICK_S)
                except TimeoutError:
                    continue
                yield number, news
                num_open -= bool(news.reason)
                if news.error:
                    return
        finally:
            self._worker.give_up(tickets)


async def _with_first(first: Numbered, rest: AsyncIterator[Numbered]) -> AsyncIterator[Numbered]:
    yield first
    async for item in rest:
        yield item


class _Answer:
    """The answer to a request, in OpenAI's words."""

    def __init__(self, asked: Asked, model: str) -> None:
        self._asked = asked
        prefix, kind = ("chatcmpl", "chat.completion") if asked.is_chat else ("cmpl", "")
        self._head = {
            "id": f"{prefix}-{secrets.token_hex(12)}",
            "object": kind or "text_completion",
            "created": int(time.time()),
            "model": model,
        }
        self._num_tokens = [0] * len(asked.wanted)

    async def whole(self, news: AsyncIterator[Numbered]) -> Response:
        texts = list(self._asked.echo)
        reasons: list[str | None] = [None] * len(texts)
        async for number, piece in news:
            if piece.error:
                return _error(500, piece.error)
            texts[number] += piece.text
            reasons[number] = piece.reason
            self._num_tokens[number] = piece.num_tokens
        both = enumerate(zip(texts, reasons, strict=True))
        choices = [self._choice(number, text, reason) for number, (text, reason) in both]
        return JSONResponse({**self._head, "choices": choices, "usage": self._usage()})

    def _choice(self, number: int, text: str, reason: str | None) -> dict[str, Any]:
        said: dict[str, Any] = {"text": text}
        if self._asked.is_chat:
            said = {"message": {"role": "assistant", "content": text, "refusal": None}}
        return {"index": number, **said, "logprobs": None, "finish_reason": reason}

    async def events(self, news: AsyncIterator[Numbered]) -> AsyncIterator[bytes]:
        if self._asked.is_chat:
            self._head["object"] = "chat.completion.chunk"
        are_new = set(range(len(self._asked.wanted)))
        async for number, piece in news:
            if piece.error:
                yield _event(_error_body(piece.error, None))
                return
            self._num_tokens[number] = piece.num_tokens
            text = self._asked.echo[number] + piece.text if number in are_new else piece.text
            yield _event(self._chunk([self._part(number, text, piece.reason, number in are_new)]))
            are_new.discard(number)
        if self._asked.has_usage:
            yield _event({**self._chunk([]), "usage": self._usage()})
        yield b"data: [DONE]\n\n"

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._head, "choices": choices}

    def _part(self, number: int, text: str, reason: str | None, is_new: bool) -> dict[str, Any]:
        said: dict[str, Any] = {"text": text}
        if self._asked.is_chat:
            role = {"role": "assistant"} if is_new else {}
            said = {"delta": {**role, "content": text}}
        return {"index": number, **said, "logprobs": None, "finish_reason": reason}

    def _usage(self) -> dict[str, int]:
        read, written = self._asked.num_prompt_tokens, sum(self._num_tokens)
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        }


async def _json_body(request: Request) -> Any:
    """The JSON of a request. Raises BadRequest if it is too long or no JSON."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise BadRequest(None, f"expected at most {MAX_BODY_BYTES:,} bytes")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(None, "expected JSON, found something else") from error


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def _error_body(message: str, param: str | None) -> dict[str, Any]:
    return {
        "error": {
            "message": message,
            "type": "invalid_request_error" if param else "server_error",
            "param": param,
            "code": None,
        }
    }


def _error(status: int, message: str, param: str | None = None) -> Response:
    body = _error_body(message, param)
    if status < 500:
        body["error"]["type"] = "invalid_request_error"
    return JSONResponse(body, status)

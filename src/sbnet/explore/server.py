"""A server for one page and one network, for the person at this machine and nobody else.

It listens on the loopback interface alone. Every address begins with a token that nobody can guess; a request with
another host (which is how a web site rebinds its name to this machine) or from another origin is refused. No request
names a file. Who does not send a request soon is disconnected.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from sbnet.errors import ParameterError, SBNetError
from sbnet.explore.answers import VERBS
from sbnet.model.network import Network

HOST = "127.0.0.1"
LARGEST = 1_000_000
"""Bytes of a request; evidence on a hundred thousand units is shorter."""
PATIENCE = 10.0
"""Seconds in which a request has to arrive, all of it, from when the connection is free for one."""
MOST_WAITING = 64
"""Connections from which a request is awaited; beyond that, whoever has been waited for longest is disconnected."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Lets only requests through that come from the page itself, and puts the headers of safety on every reply."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self.app = app
        self.hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self.refusal(scope["path"], Headers(scope=scope))
        app = PlainTextResponse(refused, status_code=403) if refused else self.app

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.append(name, value)
            await send(message)

        await app(scope, receive, guarded)

    def refusal(self, path: str, headers: Headers) -> str:
        """Why a request is refused, or nothing."""
        if headers.get("host") not in self.hosts:
            return "this server answers to 127.0.0.1 and localhost alone"
        if headers.get("origin", f"http://{headers['host']}") != f"http://{headers['host']}":
            return "another page asks; only the page of this server may"
        start, _, rest = path.partition("/")  # "*" and "foo" have no slash at all
        if start or not secrets.compare_digest(rest.partition("/")[0].encode(), self.token.encode()):
            return "the address lacks its token; open the one that sbnet printed"
        return ""


def application(network: Network, page: str, port: int, token: str) -> ASGIApp:
    """The page, and the answers to what it asks."""

    async def show(request: Request) -> Response:
        return HTMLResponse(page)

    async def reply(request: Request) -> Response:
        verb = VERBS.get(request.path_params["verb"])
        if verb is None:
            return JSONResponse({"error": f"one can ask for {', '.join(VERBS)}"}, status_code=404)
        if request.headers.get("content-type", "").split(";")[0] != "application/json":
            return JSONResponse({"error": "send application/json"}, status_code=415)
        try:
            asked = await _asked(request)
            return JSONResponse(_finite(await run_in_threadpool(verb, network, asked)))
        except SBNetError as error:
            return JSONResponse({"error": str(error)}, status_code=400)

    routes = [Route("/{token}/", show), Route("/{token}/{verb}", reply, methods=["POST"])]
    return Guard(Starlette(routes=routes), port, token)


async def _asked(request: Request) -> dict[str, Any]:
    """What was sent, as long as it is not too long."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            raise ParameterError(f"a request has at most {LARGEST:,} bytes")
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise ParameterError("the request is not JSON") from None
    if not isinstance(asked, dict):
        raise ParameterError("the request is not an object of JSON")
    return asked


def _finite(reply: Any) -> Any:
    """What JSON can say: the logarithm of nothing, and what follows from it, is null."""
    if isinstance(reply, dict):
        return {key: _finite(value) for key, value in reply.items()}
    if isinstance(reply, list):
        return [_finite(value) for value in reply]
    return None if isinstance(reply, float) and not math.isfinite(reply) else reply


class Punctual(H11Protocol):
    """HTTP for clients that send their requests soon; answers may take as long as they take."""

    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()
        waiting = [one for one in self.connections if isinstance(one, Punctual) and one.waiting]
        if len(waiting) > MOST_WAITING:
            min(waiting, key=lambda one: one.deadline.when() if one.deadline else 0.0).transport.abort()

    def on_response_complete(self) -> None:
        self._await_request()  # first: the next request may be there already, and be answered in the next line
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        super().connection_lost(exc)

    @property
    def waiting(self) -> bool:
        """Is a request, or the rest of one, still to come?"""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _await_request(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        self.deadline = self.loop.call_later(PATIENCE, lambda: self.transport.abort() if self.waiting else None)


class Served:
    """A server that has a place to listen at."""

    def __init__(self, network: Network, page: str, port: int) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self.socket.bind((HOST, port))
        except OSError as error:
            self.socket.close()
            way_out = f"nothing can listen at port {port} ({error.strerror}); port=0 takes a free one"
            raise ParameterError(way_out) from None
        self.socket.listen()
        self.port: int = self.socket.getsockname()[1]
        self.token = secrets.token_urlsafe(24)
        config = uvicorn.Config(
            application(network, page, self.port, self.token),
            http=Punctual,
            log_level="error",  # a request that is no HTTP is answered by 400, and whoever runs this need not know
            access_log=False,  # the token is in every address
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self.server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"

    def run(self) -> None:
        try:
            self.server.run(sockets=[self.socket])
        finally:
            self.socket.close()


@contextmanager
def running(served: Served) -> Iterator[str]:
    """Its address, with the server in a thread of its own for as long as the block lasts."""
    thread = threading.Thread(target=served.run, daemon=True)
    thread.start()
    try:
        yield served.address
    finally:
        served.server.should_exit = True
        thread.join(timeout=10)

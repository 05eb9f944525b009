"""A server for one page and one network, for the person at this machine and nobody else.

It listens on the loopback interface alone. Every address begins with a token that nobody can guess; a request with
another host (which is how a web site rebinds its name to this machine) or from another origin is refused. No request
names a file.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sbnet.errors import ParameterError, SBNetError
from sbnet.explore.answers import VERBS
from sbnet.network import Network

HOST = "127.0.0.1"
LARGEST = 1_000_000
"""Bytes of a request; evidence on a hundred thousand units is shorter."""
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
        if not secrets.compare_digest(path.split("/")[1].encode(), self.token.encode()):
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
            asked = _parsed(await _body(request))
            return JSONResponse(await run_in_threadpool(verb, network, asked))
        except SBNetError as error:
            return JSONResponse({"error": str(error)}, status_code=400)

    routes = [Route("/{token}/", show), Route("/{token}/{verb}", reply, methods=["POST"])]
    return Guard(Starlette(routes=routes), port, token)


async def _body(request: Request) -> bytes:
    """What was sent, as long as it is not too long."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            raise ParameterError(f"a request has at most {LARGEST:,} bytes")
    return body


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise ParameterError("the request is not JSON") from None
    if not isinstance(asked, dict):
        raise ParameterError("the request is not an object of JSON")
    return asked


class Served:
    """A server that has a place to listen at."""

    def __init__(self, network: Network, page: str, port: int) -> None:
        self.socket = _listening(port)
        self.port: int = self.socket.getsockname()[1]
        self.token = secrets.token_urlsafe(24)
        config = uvicorn.Config(
            application(network, page, self.port, self.token),
            log_level="warning",
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
        """Where the page is."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def run(self) -> None:
        """Answer until someone stops it."""
        try:
            self.server.run(sockets=[self.socket])
        finally:
            self.socket.close()


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise ParameterError(f"nothing can listen at port {port} ({error.strerror}); port=0 takes a free one") from None
    listener.listen()
    return listener


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

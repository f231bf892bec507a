"""Routes of the console's files."""

import asyncio
import mimetypes
from hashlib import sha256
from pathlib import Path

from fastapi import FastAPI, Request, Response

FOLDER = Path(__file__).parent / "console"
INDEX = "index.html"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}


def add_console(app: FastAPI) -> None:
    """Add a route for each file: paths of requests are never looked up on the disk."""
    for file in sorted(FOLDER.rglob("*")):
        if file.is_file() and not file.name.startswith("."):
            inside = file.relative_to(FOLDER).as_posix()
            _serve(app, "/" if inside == INDEX else f"/{inside}", file)


def _serve(app: FastAPI, path: str, file: Path) -> None:
    kind = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"

    async def send(request: Request) -> Response:
        content = await asyncio.to_thread(file.read_bytes)
        tag = f'"{sha256(content).hexdigest()[:16]}"'
        headers = {**HEADERS, "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, 200, headers, kind)

    app.add_api_route(path, send, methods=["GET", "HEAD"], include_in_schema=False)

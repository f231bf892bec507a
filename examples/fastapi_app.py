"""A FastAPI application with a memory: each worker process opens its own.

`uvicorn fastapi_app:app --workers 2` starts it. Run as a program, it starts two workers, talks to them, and stops.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from fastapi import FastAPI

from jiyi import Memory


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with Memory.open(os.environ.get("APP_STORE")) as memory:
        app.state.memory = memory
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/users/{user_id}/notes")
async def add(user_id: str, text: str) -> dict[str, int]:
    receipt = await app.state.memory.add(text, user_id=user_id)
    return {"created": receipt.created}


@app.get("/users/{user_id}/notes")
async def search(user_id: str, query: str) -> list[str]:
    found = await app.state.memory.search(query, user_id=user_id)
    return [hit.content for hit in found if hit.relevant]


def main() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(Path(__file__).parent), "fastapi_app:app"]
    environment = {**os.environ, "APP_STORE": sys.argv[1] if len(sys.argv) > 1 else "notes.db"}
    server = subprocess.Popen(  # noqa: S603 - this program itself
        [*command, "--port", str(port), "--workers", "2", "--log-level", "error"], env=environment
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as web:
            for _ in range(300):
                try:
                    web.get("/users/mei/notes", params={"query": "ready"})
                    break
                except httpx.TransportError:
                    time.sleep(0.2)
            print("served at", web.base_url)
            print(web.post("/users/mei/notes", params={"text": "I am allergic to peanuts"}).json())
            print(web.get("/users/mei/notes", params={"query": "what am I allergic to?"}).json())
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()

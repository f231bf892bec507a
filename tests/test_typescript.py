"""The TypeScript client, its helpers for the Vercel AI SDK, and mem0's npm client, against a running server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rest import Running, running

SDK = Path(__file__).parents[1] / "sdk" / "typescript"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    place = tmp_path_factory.mktemp("typescript") / "memory.db"
    with running(place, extraction={"enabled": True}) as server:
        yield server


def test_the_typescript_client_and_mem0s_npm_client(server: Running, tmp_path: Path) -> None:
    """Types are made from the server's own document; then everything is compiled and its tests run."""
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if not (SDK / "node_modules").is_dir():
        missing.append("sdk/typescript/node_modules (make sdk)")
    if missing:
        told = f"the TypeScript client is NOT tested: {', '.join(missing)} is not there"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)
    key = server.key(scopes=("read", "write", "delete"))
    document = tmp_path / "openapi.json"
    with server.client(key) as web:
        document.write_bytes(web.get("/openapi.json").content)
    env = {**os.environ, "JIYI_URL": server.url, "JIYI_KEY": key, "MEM0_TELEMETRY": "false", "OPENAPI": str(document)}
    env["HOME"] = str(tmp_path)  # mem0's client keeps a file there
    for script in ("types", "test"):
        done = subprocess.run(
            ["npm", "run", "--silent", script],
            cwd=SDK,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert "fail 0" in done.stdout


def test_the_package_has_no_dependencies_and_its_lock_names_no_registry() -> None:
    package: dict[str, Any] = json.loads((SDK / "package.json").read_text())
    assert "dependencies" not in package and package["type"] == "module"
    lock = (SDK / "package-lock.json").read_text()
    assert '"resolved"' not in lock and "http://" not in lock

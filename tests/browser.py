"""A real server and a real browser for the tests of the console."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, expect, sync_playwright

import jiyi.server
from support import missing

FOLDER = Path(jiyi.server.__file__).parent / "console"
NAMES = ("chromium", "chromium-browser", "google-chrome")
VIEWS = (
    "search",
    "ask",
    "memories",
    "people",
    "profile",
    "timeline",
    "graph",
    "changes",
    "review",
    "import",
    "maintenance",
    "jobs",
    "metrics",
    "keys",
)
CHAT = [
    {"role": "user", "content": "I work at Anker.", "timestamp": "2024-05-01T10:00:00Z"},
    {"role": "user", "content": "我对花生过敏。", "timestamp": "2024-05-01T10:01:00Z"},
    {"role": "user", "content": "I now work at DJI.", "timestamp": "2025-05-01T10:00:00Z"},
]


expect.set_options(timeout=60_000)  # machines that test are busy


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's, or the one at TEST_CHROMIUM; nothing is downloaded. For a module and no longer: while it is open, no
    event loop can be started in this thread."""
    program = os.environ.get("TEST_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        missing("CHROMIUM", "chromium is not installed (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Server:
    """`jiyi serve` in a process of its own."""

    def __init__(self, store: Path, key: str | None = None) -> None:
        self.store, self.key = store, key
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from jiyi.cli import main; main()", "serve", "--port", "0", "--store", str(store)],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        told = self._process.stderr.readline()
        found = re.search(r"http://\S+?:\d+", told)
        assert found, told + self._process.stderr.read()
        self.url = found[0]

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """What the API answers, past the console."""
        named = {name: value for name, value in query.items() if value is not None}
        request = urllib.request.Request(f"{self.url}/v1/{path}?{urlencode(named, doseq=True)}", method=method)
        if self.key:
            request.add_header("Authorization", f"Bearer {self.key}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.loads(reply.read())

    def status(self, path: str, **query: Any) -> int:
        try:
            self.call("GET", path, **query)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        return 200

    def add(self, user: str, text: str, **more: Any) -> dict[str, Any]:
        """One memory, as it is stored."""
        memory: dict[str, Any] = self.call("POST", "memories", {"text": text, "wait": True, **more}, user_id=user)[
            "memories"
        ][0]
        return memory

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        assert self._process.stderr is not None
        self._process.stderr.close()


class Visit:
    """A page on the console, with all that it did besides."""

    def __init__(self, server: Server, context: BrowserContext) -> None:
        self.server, self.context = server, context
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        context.on("request", self._requested)
        self.page: Page = context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.on("console", lambda told: self._complained(told.type, told.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _complained(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((self.server.url + "/", "data:", "about:", "blob:")):
            self.strangers.append(request.url)

    def open(self, view: str, **params: str) -> Page:
        """A view, shown anew."""
        self.page.goto("about:blank")
        query = "&".join(f"{name}={quote(value)}" for name, value in params.items())
        self.page.goto(f"{self.server.url}/#/{view}" + (f"?{query}" if query else ""))
        return self.page

    def go(self, view: str, **params: str) -> Page:
        """The same, without loading the page again."""
        query = "&".join(f"{name}={quote(value)}" for name, value in params.items())
        self.page.evaluate("to => { location.hash = to }", f"#/{view}" + (f"?{query}" if query else ""))
        expect(self.page.locator(f'.nav [data-view="{view}"]')).to_have_attribute("aria-current", "page")
        self.page.wait_for_load_state("networkidle")
        return self.page

    def leave(self) -> None:
        """Whatever was done: no script failed, the policy was not violated, and nothing left the origin."""
        self.context.close()
        assert not self.complaints
        assert not self.strangers


@contextmanager
def visit(
    browser: Browser, server: Server, user: str | None, *, key: str | None = "the server's", **options: Any
) -> Iterator[Visit]:
    """A person with a clean browser, who looks at this user's memory."""
    context = browser.new_context(**{"locale": "en-GB", "viewport": {"width": 1360, "height": 860}, **options})
    if user is not None:
        context.add_init_script(
            "if (location.protocol.startsWith('http') && !localStorage.getItem('jiyi.user'))"
            f" localStorage.setItem('jiyi.user', {json.dumps(user)})"
        )
    if key is not None and server.key is not None:
        context.add_init_script(
            f"if (location.protocol.startsWith('http')) sessionStorage.setItem('jiyi.key', {json.dumps(server.key)})"
        )
    visitor = Visit(server, context)
    yield visitor
    visitor.leave()


def item(page: Page, memory: dict[str, Any]) -> Locator:
    """A memory in the list or among the hits."""
    return page.locator(f'.main [data-item="{memory["id"]}"]')


def action(page: Page, name: str) -> Locator:
    """A button, by what it does."""
    return page.locator(f'[data-action="{name}"]')


def picture(page: Page, name: str) -> None:
    """Save a screenshot, if TEST_PICTURES names a folder: somebody should look at it."""
    folder = os.environ.get("TEST_PICTURES")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


AXE = Axe()


def serious(page: Page) -> list[str]:
    """The violations that axe-core calls serious or critical: contrast, names, roles, order, keyboard."""
    page.evaluate("Promise.all(document.getAnimations().map(one => one.finished.catch(() => null)))")
    found = AXE.run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{one['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]

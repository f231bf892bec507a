"""Measure the console in Chromium: first paint and first rows with many memories, and the way to a first fact.

    python -m bench.web_console --memories 10000

It starts `jiyi serve` on a temporary store. Chromium is the one on the path or at TEST_CHROMIUM.
"""

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from jiyi import Memory
from jiyi.testing import WordEmbedder

USER = "many"
AS_USER = f"location.protocol.startsWith('http') && localStorage.setItem('jiyi.user', '{USER}')"
PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


async def fill(path: Path, memories: int) -> None:
    async with Memory.open(path, embedder=WordEmbedder(64)) as memory:
        for start in range(0, memories, 1000):
            some = range(start, min(start + 1000, memories))
            await memory.add([f"Note {at} about tea and the town of Name{at % 300}." for at in some], user_id=USER)


def serve(path: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-c", "from jiyi.cli import main; main()", "serve", "--port", "0", "--store", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r"http://\S+?:\d+", process.stderr.readline())
    if found is None:
        raise SystemExit("the server did not start")
    return process, found[0]


def first_fact(page: Page, url: str, began: float) -> float:
    """Return the seconds from the start of the server until a new user sees a remembered fact."""
    page.goto(f"{url}/#/search")
    page.get_by_label("Text of the memory").fill("I live in Lisbon and I am allergic to nuts.")
    page.locator('[data-action="remember"]').click()
    page.locator("main").get_by_text("allergic to nuts").first.wait_for()
    return time.perf_counter() - began


def look(page: Page, url: str, view: str) -> tuple[float, float]:
    """Return the milliseconds until the first paint and until the first rows."""
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(f"{url}/#/{view}", wait_until="commit")
    page.locator(".main [data-item], .main [data-subject]").first.wait_for()
    rows = (time.perf_counter() - began) * 1000
    return page.evaluate(PAINTED), rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    wanted = parser.parse_args().memories
    program = os.environ.get("TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "memory.db"
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        began = time.perf_counter()
        process, url = serve(path)
        try:
            page = browser.new_context(locale="en-GB").new_page()
            print(f"first fact {first_fact(page, url, began):.1f} s after `jiyi serve`")
        finally:
            process.terminate()
            process.wait()
        print(f"filling the store with {wanted:,} memories …")
        with ThreadPoolExecutor(1) as pool:  # Playwright's own event loop runs in this thread
            pool.submit(asyncio.run, fill(path, wanted)).result()
        process, url = serve(path)
        try:
            context = browser.new_context(locale="en-GB")
            context.add_init_script(AS_USER)
            page = context.new_page()
            look(page, url, "memories")  # the first visit also starts the server's caches
            for view in ("memories", "people", "changes", "timeline"):
                paint, rows = look(page, url, view)
                print(f"{view:<10} first paint {paint:6.0f} ms, first rows {rows:6.0f} ms")
        finally:
            process.terminate()
            process.wait()
        browser.close()


if __name__ == "__main__":
    main()

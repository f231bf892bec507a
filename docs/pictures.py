"""Take the pictures of the console for these pages: `python docs/pictures.py [FOLDER]`.

It starts `jiyi serve` on a temporary store, adds an invented person's messages, and photographs the pages in Chromium.
Fonts with Chinese characters must be installed.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browser import NAMES, Server  # noqa: E402 - it lies beside the tests

SAID = (
    ("2024-09-03", "Hi! I'm Mei. I live in Shanghai and I work at Anker as a product manager."),
    ("2024-09-04", "I am a vegetarian, and I'm allergic to peanuts."),
    ("2024-10-12", "我每周二晚上游泳。"),
    ("2024-11-02", "My sister Ana works at Airbus. She lives in Toulouse."),
    ("2024-12-20", "I have a Netflix subscription, and my rent is 6800 yuan."),
    ("2025-01-15", "My manager is Tom Baker. Tom prefers short emails."),
    ("2025-02-10", "我女朋友叫小雨，她喜欢爬山。"),
    ("2025-03-01", "I started learning Rust. My editor is Neovim."),
    ("2025-05-01", "I joined DJI last month."),
    ("2025-05-20", "I moved to Shenzhen."),
    ("2025-06-11", "I cancelled Netflix, it was too expensive."),
    ("2025-07-01", "I'm not a vegetarian any more, I eat fish now."),
    ("2025-08-08", "The Apollo project is due on 15 December. Tom Baker leads Apollo."),
    ("2025-09-09", "I have two cats, Miso and Tofu."),
    ("2025-10-10", "我下周三去上海出差，住在静安。"),
    ("2025-11-01", "My new manager is Lina Wang."),
    ("2025-11-03", "Please answer me in short sentences, and always use metric units."),
    ("2025-11-05", "I prefer aisle seats when I fly."),
    ("2025-11-06", "My rent is now 7200 yuan."),
)
# Name, address, language, theme, width, height.
PICTURES = (
    ("first", "search", "en", "light", 1200, 800),
    ("search", "search?q=where+does+she+live+now", "en", "light", 1200, 760),
    ("search-zh", "search?q=对什么过敏", "zh", "dark", 1200, 760),
    ("ask", "ask?q=What+should+I+cook+for+dinner%3F", "en", "light", 1200, 800),
    ("people", "people", "en", "light", 1200, 700),
    ("timeline", "timeline", "en", "light", 1200, 760),
    ("changes", "changes", "en", "light", 1200, 760),
    ("review", "review", "en", "light", 1200, 560),
    ("profile", "profile", "en", "light", 1200, 620),
    ("graph", "graph", "en", "dark", 1200, 720),
    ("import", "import", "en", "light", 1200, 560),
    ("maintenance", "maintenance", "en", "light", 1200, 760),
    ("metrics", "metrics", "en", "light", 1200, 760),
    ("memory", "changes?open=", "zh", "light", 1360, 800),
    ("phone", "timeline", "zh", "dark", 390, 800),
)


def fill(server: Server) -> str:
    """Add the messages and some memories to review; return the id of a memory with a history."""
    for at, (day, text) in enumerate(SAID):
        message = {"role": "user", "content": text, "timestamp": f"{day}T10:00:00Z"}
        server.call(
            "POST", "memories", {"messages": [message], "session_id": f"chat {at}", "wait": True}, user_id="mei"
        )
    server.add("mei", "The wifi code of the office is 4711.", trust=0.4, actor="agent")
    guess = {"candidates": [{"text": "Mei's blood type is A.", "confidence": 0.4}], "wait": True}
    server.call("POST", "memories", guess, user_id="mei")
    tea = server.add("mei", "小雨喜欢绿茶")
    server.call("PATCH", f"memories/{tea['id']}", {"content": "小雨喜欢乌龙茶", "reason": "更正"}, user_id="mei")
    return str(tea["id"])


def take(browser: Browser, server: Server, folder: Path, opened: str) -> None:
    for name, address, language, theme, width, height in PICTURES:
        locale = "zh-CN" if language == "zh" else "en-GB"
        size = {"width": width, "height": height}
        context = browser.new_context(locale=locale, color_scheme=theme, viewport=size)  # type: ignore[arg-type]
        user = "newcomer" if name == "first" else "mei"
        context.add_init_script(f"location.protocol.startsWith('http') && localStorage.setItem('jiyi.user', '{user}')")
        page = context.new_page()
        page.goto(f"{server.url}/#/{address}{opened if address.endswith('open=') else ''}")
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(800)
        if name == "search":
            page.locator("[data-why]").first.click()
            page.wait_for_timeout(300)
        page.screenshot(path=str(folder / f"console-{name}.png"))
        context.close()


def main() -> None:
    folder = Path(sys.argv[1]) if sys.argv[1:] else HERE / "images"
    program = os.environ.get("TEST_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        server = Server(Path(place) / "memory.db")
        try:
            opened = fill(server)
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            take(browser, server, folder, opened)
            browser.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main()

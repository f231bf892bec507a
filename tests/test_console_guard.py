"""What nobody can make the console do: run what is stored, show it to others, or be unreadable. With keys, in a real
browser, on a real server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from browser import CHAT, VIEWS, Server, action, picture, serious, visit


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose first key was made in the console."""
    server = Server(tmp_path_factory.mktemp("guard") / "memory.db")
    for at, message in enumerate(CHAT):
        server.call("POST", "memories", {"messages": [message], "session_id": f"s{at}", "wait": True}, user_id="told")
    with visit(browser, server, "told") as visitor:
        page = visitor.open("keys")
        action(page, "new-key").click()
        page.get_by_label("Name").fill("root")
        for scope in ("delete", "manage keys"):
            page.get_by_label(scope).check()
        page.get_by_role("dialog").get_by_role("button", name="New key").click()
        server.key = page.locator(".secret").inner_text()
        page.get_by_role("button", name="Done").click()
        expect(page.locator(".table").first).to_contain_text("root")
    yield server
    server.stop()


EVIL = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'
EVIL_MARKDOWN = f"""# {EVIL}
[click](javascript:window.pwned=1) [data](data:text/html,<script>window.pwned=1</script>) **{EVIL}**
- <a href="javascript:pwned=1" onclick="pwned=1">x</a>
> <svg onload="window.pwned=1"><style>*{{display:none}}</style>
```html
<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>
```
[good](https://example.com/) ![picture](https://evil.example/x.png)
"""
FOREIGN = (
    "script:not([src]), iframe, object, embed, style, [onerror], [onload], [onclick], [style*=url],"
    " .main img:not(.brand img), .pane img"
)


def test_what_is_stored_stays_text(browser: Browser, server: Server) -> None:
    """In content, Markdown, tags, metadata, sessions, speakers, user names, queries and keys' names."""
    user = EVIL[:200]
    memory = server.add(user, EVIL_MARKDOWN, tags=[EVIL], metadata={"x": EVIL}, session_id=EVIL, memory_type="note<b>")
    message = {"role": "user", "name": EVIL, "content": f"I live in {EVIL}. I work at {EVIL}."}
    server.call("POST", "memories", {"messages": [message], "session_id": EVIL, "wait": True}, user_id=user)
    server.call("PATCH", f"memories/{memory['id']}", {"reason": EVIL, "content": EVIL_MARKDOWN + EVIL}, user_id=user)
    with visit(browser, server, user) as visitor:
        visitor.open("search", q=EVIL)
        for view in VIEWS:
            page = visitor.go(view, open=memory["id"], **({"q": EVIL} if view == "search" else {}))
            expect(page.locator(".pane-text")).to_contain_text(EVIL)
            expect(page.locator(".pane .changes ins").first).to_be_visible()
            assert page.locator(FOREIGN).count() == 0, view
            assert page.evaluate("window.pwned === undefined"), view
        expect(page.locator("#whose")).to_have_value(user)
        links = page.locator(".pane-text a").evaluate_all("all => all.map(one => one.href)")
        assert links == ["https://example.com/", "https://evil.example/x.png"]
        page = visitor.open("search", q=EVIL)
        expect(page.locator(".hit-card").first).to_contain_text("<img src=x onerror=")
        assert page.evaluate("window.pwned === undefined")


def test_the_policy_stops_what_would_get_in(browser: Browser, server: Server) -> None:
    with visit(browser, server, "told") as visitor:
        page = visitor.open("memories")
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=data:, onerror=\"window.pwned=1\">')")
        page.wait_for_timeout(200)
        assert page.evaluate("window.pwned === undefined")
        assert any("Content Security Policy" in told for told in visitor.complaints)
        visitor.complaints.clear()


def test_a_key_is_asked_for_and_opens_no_more_than_it_may(browser: Browser, server: Server) -> None:
    server.add("mei", "Mei likes pears.")
    server.add("阿明", "阿明喜欢爬山。")
    phone = server.call("POST", "keys", {"name": "phone", "scopes": ["read"], "user_ids": ["mei", "阿明"]})
    with visit(browser, server, None, key=None) as visitor:
        page = visitor.open("memories")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Key").fill("jiyi_wrong")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_contain_text("does not accept this key")
        page.keyboard.press("Escape")
        expect(dialog).to_be_visible()
        dialog.get_by_label("Key").fill(phone["key"])
        page.keyboard.press("Enter")
        expect(page.locator(".rows")).to_contain_text("Mei likes pears.")
        assert phone["key"] not in page.evaluate("JSON.stringify(localStorage)") + page.url
        page.locator("#whose").select_option("阿明")
        expect(page.locator(".rows")).to_contain_text("阿明喜欢爬山。")
        expect(page.locator(".rows")).not_to_contain_text("pears")
        page.locator(".rows a").click()
        expect(page.locator(".pane-text")).to_be_visible()
        for forbidden in ("add", "edit", "archive", "delete"):
            expect(action(page, forbidden)).to_have_count(0)
        for view, told in (("keys", "Only an admin key"), ("metrics", "one user only"), ("jobs", "All checks passed")):
            expect(visitor.go(view).locator(".view")).to_contain_text(told)
        for view in ("ask", "people", "changes", "review", "maintenance"):
            visitor.go(view)
            expect(page.locator("h1")).to_be_visible()
            expect(page.get_by_role("alert")).to_have_count(0)
            for forbidden in ("merge", "backup", "compress"):
                expect(action(page, forbidden)).to_have_count(0)
        server.call("DELETE", f"keys/{phone['id']}")
        page.wait_for_timeout(1100)
        page = visitor.open("memories")
        expect(page.get_by_role("dialog")).to_be_visible()
        visitor.complaints = [told for told in visitor.complaints if "401" not in told]


def test_a_key_is_revoked(browser: Browser, server: Server) -> None:
    made = server.call("POST", "keys", {"name": "<b>old</b> 手机", "scopes": ["read"], "user_ids": ["mei"]})
    with visit(browser, server, "mei") as visitor:
        page = visitor.open("keys")
        row = page.locator("tr", has_text=made["id"]).first
        row.get_by_role("button", name="Revoke").click()
        expect(page.get_by_role("dialog")).to_contain_text("Revoke the key <b>old</b> 手机?")
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(row).to_contain_text("revoked")
    assert next(key for key in server.call("GET", "keys")["items"] if key["id"] == made["id"])["revoked_at"]


DESKTOP, PHONE = {"width": 1360, "height": 860}, {"width": 375, "height": 800}
ALL = [(theme, size) for theme in ("light", "dark") for size in ("desktop", "phone")]
SOME = [("light", "desktop"), ("dark", "phone")]  # colours do not depend on the width, nor names on the theme


@pytest.mark.parametrize(("theme", "size"), ALL if os.environ.get("TEST_PICTURES") else SOME)
def test_everybody_can_read_and_use_it(browser: Browser, server: Server, theme: Any, size: str) -> None:
    """On every page, with a memory open or not, axe-core finds nothing serious, and nothing is wider than a phone."""
    memory = server.call("GET", "memories", user_id="told", limit=1)["items"][0]
    window = DESKTOP if size == "desktop" else PHONE
    with visit(browser, server, "told", color_scheme=theme, viewport=window) as visitor:
        visitor.open("keys")
        for view in VIEWS:
            query = {"q": "work"} if view in ("search", "ask") else {}
            opened = {"open": memory["id"]} if size == "desktop" else {}  # on a phone it covers the page
            page = visitor.go(view, **opened, **query)
            if opened:
                expect(page.locator(".pane .changes")).to_be_visible()
            if view == "search":
                page.locator("[data-why]").first.click()
            assert "\n".join(serious(page)) == "", view
            assert page.evaluate("document.documentElement.scrollWidth") <= window["width"], view
            picture(page, f"{view}-{theme}-{size}")
        page = visitor.go("memories", open=memory["id"])
        expect(page.locator(".pane .changes")).to_be_visible()
        assert "\n".join(serious(page)) == "", "a memory"
        assert page.evaluate("document.documentElement.scrollWidth") <= window["width"]

"""The review queue of the console: endings that are not sure are kept or taken back, doubtful memories deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from browser import Server, picture, serious, visit

OLDER, NEWER = "I drink coffee every morning.", "I drink tea in the morning now."  # the reader is not sure


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("review") / "memory.db")
    yield server
    server.stop()


def unclear(server: Server, user: str) -> list[dict[str, Any]]:
    """Let a statement end another with a probability that is not sure."""
    for day, text in ((8, OLDER), (15, NEWER)):
        message = {"role": "user", "content": text, "timestamp": f"2026-10-{day:02}T10:00:00Z"}
        server.call("POST", "memories", {"messages": [message], "session_id": str(day), "wait": True}, user_id=user)
    found = [one for one in server.call("GET", "review", user_id=user)["items"] if one["why"] == "ended"]
    if not found:
        pytest.skip("the reader is sure of this pair, or sees no ending")
    memories: list[dict[str, Any]] = found[0]["memories"]
    return memories


def test_an_unclear_ending_is_taken_back(browser: Browser, server: Server) -> None:
    _, older = unclear(server, "li")
    assert older["valid_to"] is not None
    with visit(browser, server, "li") as visitor:
        page = visitor.open("review")
        card = page.locator("[data-review]")
        expect(card).to_contain_text("ended, not surely")
        assert "\n".join(serious(page)) == ""
        card.get_by_role("button", name="It still holds").click()
        expect(page.locator(".state")).to_contain_text("Nothing to review")
        assert server.call("GET", f"memories/{older['id']}", user_id="li")["valid_to"] is None
        page.locator("#notes").get_by_role("button", name="Undo").last.click()
        expect(card).to_contain_text("ended, not surely")
    assert server.call("GET", f"memories/{older['id']}", user_id="li")["valid_to"] is not None


def test_an_unclear_ending_is_accepted(browser: Browser, server: Server) -> None:
    _, older = unclear(server, "lu")
    options = {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}, "locale": "zh-CN"}
    with visit(browser, server, "lu", **options) as visitor:
        page = visitor.open("review")
        expect(page.locator("[data-review]")).to_contain_text("可能已失效")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        picture(page, "review-ended-dark-390")
        page.locator("[data-review]").press("y")
        expect(page.locator(".state")).to_be_visible()
    assert server.call("GET", f"memories/{older['id']}", user_id="lu")["valid_to"] is not None


def test_a_doubtful_memory_is_deleted(browser: Browser, server: Server) -> None:
    body = {"candidates": [{"content": "Perhaps she likes jazz", "confidence": 0.3}], "wait": True}
    [memory] = server.call("POST", "memories", body, user_id="dora")["memories"]
    with visit(browser, server, "dora") as visitor:
        page = visitor.open("review")
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.locator(".state")).to_contain_text("Nothing to review")
    assert server.status(f"memories/{memory['id']}", user_id="dora") == 404

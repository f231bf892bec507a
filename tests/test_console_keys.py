"""The console without a mouse: no shortcut is lost in a field, and the command palette goes everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from browser import VIEWS, Server, action, picture, serious, visit


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("keys") / "memory.db")
    server.add("mei", "Mei keeps bees on the roof.")
    yield server
    server.stop()


def test_no_page_takes_the_keys_before_it_is_asked_to(browser: Browser, server: Server) -> None:
    with visit(browser, server, "mei") as visitor:
        for view in VIEWS:
            page = visitor.open(view)
            expect(page.locator(".view h1")).to_be_attached()
            page.keyboard.press("?")
            expect(page.get_by_role("dialog")).to_contain_text("Keyboard")
            page.keyboard.press("Escape")
            page.keyboard.press("g")
            page.keyboard.press("m")
            expect(page.locator('.nav [data-view="memories"]')).to_have_attribute("aria-current", "page")
        page.keyboard.press("/")
        expect(page.get_by_role("searchbox")).to_be_visible()
        page.keyboard.press("/")
        expect(page.get_by_role("searchbox")).to_be_focused()
        page.keyboard.type("g m")
        expect(page.get_by_role("searchbox")).to_have_value("g m")


def test_the_palette_goes_finds_and_adds(browser: Browser, server: Server) -> None:
    with visit(browser, server, "mei") as visitor:
        page = visitor.open("search")
        choices = page.locator(".palette-choice")
        expect(page.get_by_role("searchbox")).to_be_visible()
        page.keyboard.press("Control+k")
        field = page.get_by_role("combobox", name="Page, command or memory")
        expect(field).to_be_focused()
        page.keyboard.type("time")
        expect(choices.first).to_contain_text("Timeline")
        page.keyboard.press("Enter")
        expect(page.locator('.nav [data-view="timeline"]')).to_have_attribute("aria-current", "page")

        page.keyboard.press("Meta+k")
        page.keyboard.type("bees on the roof")
        hit = choices.filter(has_text="Mei keeps bees")
        expect(hit).to_be_visible()
        page.keyboard.press("ArrowUp")  # from the first to the last one
        expect(page.get_by_role("dialog").get_by_role("option", selected=True)).to_contain_text(
            "Add “bees on the roof”"
        )
        page.keyboard.press("ArrowUp")
        expect(hit).to_have_attribute("aria-selected", "true")
        assert field.get_attribute("aria-activedescendant") == hit.get_attribute("id")
        page.keyboard.press("Enter")
        expect(page.locator(".pane-text")).to_have_text("Mei keeps bees on the roof.")

        page.keyboard.press("Control+k")
        page.keyboard.type("Mei sells honey.")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Text of the memory")).to_have_value("Mei sells honey.")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".pane-text")).to_have_text("Mei sells honey.")

        action(page, "edit").click()
        page.get_by_label("Content").press("Control+k")  # also from within a field
        expect(field).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_label("Content")).to_be_focused()


@pytest.mark.parametrize(("theme", "width", "language"), [("light", 1280, "en-GB"), ("dark", 390, "zh-CN")])
def test_everybody_can_use_the_palette(browser: Browser, server: Server, theme: str, width: int, language: str) -> None:
    options = {"color_scheme": theme, "viewport": {"width": width, "height": 800}, "locale": language}
    with visit(browser, server, "mei", **options) as visitor:
        page = visitor.open("memories")
        expect(page.locator(".rows")).to_contain_text("bees")
        if width < 760:
            page.locator(".topbar button").click()
        action(page, "palette").click()
        page.keyboard.type("bees")
        expect(page.get_by_role("option").filter(has_text="bees on the roof")).to_be_visible()
        assert "\n".join(serious(page)) == ""
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture(page, f"palette-{theme}-{width}")

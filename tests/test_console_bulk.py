"""Many memories at once in the console: selected ones, saved filters, and the counts of an import."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from browser import FOLDER, Server, action, item, picture, serious, visit
from jiyi.transfer import records


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("bulk") / "memory.db")
    yield server
    server.stop()


def stored(server: Server, user: str, **query: Any) -> set[str]:
    return {one["content"] for one in server.call("GET", "memories", user_id=user, **query)["items"]}


def notes_of(server: Server, user: str, many: int = 4) -> list[dict[str, Any]]:
    return [server.add(user, f"Note {at}", tags=["old"] if at == 0 else []) for at in range(many)]


def select(page: Page, *memories: dict[str, Any]) -> None:
    for memory in memories:
        page.locator(f'[data-select="{memory["id"]}"]').check()


def bulk(page: Page, name: str) -> None:
    page.locator(f'[data-bulk="{name}"]').click()


def undo(page: Page) -> None:
    page.locator("#notes").get_by_role("button", name="Undo").last.click()


def test_several_are_tagged_archived_and_restored_with_undo(browser: Browser, server: Server) -> None:
    first, second, third, _ = notes_of(server, "ann")
    with visit(browser, server, "ann") as visitor:
        page = visitor.open("memories")
        select(page, first, second)
        bulk(page, "tag")
        page.get_by_role("dialog").get_by_label("Tag").fill("travel")
        page.keyboard.press("Enter")
        expect(item(page, second)).to_contain_text("travel")
        assert server.call("GET", f"memories/{first['id']}", user_id="ann")["tags"] == ["old", "travel"]
        undo(page)
        expect(item(page, second)).not_to_contain_text("travel")
        assert server.call("GET", f"memories/{first['id']}", user_id="ann")["tags"] == ["old"]

        item(page, third).focus()
        page.keyboard.press("x")
        expect(page.locator(".bulk")).to_contain_text("3 selected")
        bulk(page, "archive")
        expect(page.locator(".head")).to_contain_text("1 memory")
        assert stored(server, "ann", status="archived") == {"Note 0", "Note 1", "Note 2"}
        undo(page)
        expect(page.locator(".head")).to_contain_text("4 memories")

        page.get_by_label("Select all 4").check()
        bulk(page, "archive")
        expect(page.locator(".first-run, .state").first).to_be_visible()
        page.get_by_role("radio", name="Archived").check()
        page.get_by_label("Select all 4").check()
        page.get_by_role("button", name="Restore").click()
        page.get_by_role("radio", name="Active").check()
        expect(page.locator(".rows [data-item]")).to_have_count(4)


def test_a_deletion_can_be_undone_until_it_happens(browser: Browser, server: Server) -> None:
    first, second, _, _ = notes_of(server, "bob")
    with visit(browser, server, "bob") as visitor:
        page = visitor.open("memories")
        select(page, first, second)
        bulk(page, "delete")
        expect(item(page, first)).to_have_count(0)
        expect(page.locator(".head")).to_contain_text("2 memories")
        expect(page.locator("#notes")).to_contain_text("2 memories are being deleted for good")
        assert stored(server, "bob") == {"Note 0", "Note 1", "Note 2", "Note 3"}
        undo(page)
        expect(item(page, first)).to_be_visible()
        page.clock.install()
        select(page, first)
        bulk(page, "delete")
        with page.expect_response("**/v1/memories/delete*"):
            page.clock.fast_forward(9_000)
        select(page, second)
        bulk(page, "delete")
        page.goto("about:blank")  # whoever leaves has it deleted at once
        for _ in range(100):
            if stored(server, "bob") == {"Note 2", "Note 3"}:
                break
            page.wait_for_timeout(100)
    assert stored(server, "bob") == {"Note 2", "Note 3"}


def test_what_changed_meanwhile_is_not_overwritten_by_a_bulk_change(browser: Browser, server: Server) -> None:
    first, second, _, _ = notes_of(server, "cleo")
    with visit(browser, server, "cleo") as visitor:
        page = visitor.open("memories")
        select(page, first, second)
        server.call("PATCH", f"memories/{second['id']}", {"content": "Changed"}, user_id="cleo")
        bulk(page, "archive")
        expect(page.locator("#notes .bad")).to_be_visible()
        expect(item(page, second)).to_contain_text("Changed")
        assert stored(server, "cleo", status="archived") == set()
        visitor.complaints = [told for told in visitor.complaints if "412" not in told and "409" not in told]


def test_filters_are_saved_in_the_browser(browser: Browser, server: Server) -> None:
    notes_of(server, "dan")
    server.add("dan", "Buy milk", memory_type="task", tags=["old"])
    with visit(browser, server, "dan") as visitor:
        page = visitor.open("memories")
        expect(page.locator(".rows [data-item]")).to_have_count(5)
        expect(action(page, "save-filter")).to_have_count(0)
        action(page, "filters").click()
        page.get_by_label("Tag", exact=True).fill("old")
        expect(page.locator(".rows [data-item]")).to_have_count(2)
        page.locator('[data-type="task"]').click()
        expect(page.locator(".rows [data-item]")).to_have_count(1)
        action(page, "save-filter").click()
        page.get_by_label("Name").fill("旧任务")
        page.keyboard.press("Enter")
        expect(action(page, "save-filter")).to_have_count(0)

        page = visitor.open("memories")
        expect(page.locator(".rows [data-item]")).to_have_count(5)
        saved = page.locator('[data-saved="旧任务"]')
        saved.click()
        expect(page.locator(".rows [data-item]")).to_have_count(1)
        expect(saved).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_label("Tag", exact=True)).to_have_value("old")
        saved.click()
        expect(page.locator(".rows [data-item]")).to_have_count(5)
        page.get_by_role("button", name="Remove the saved filter 旧任务").click()
        page.reload()
        expect(page.locator(".rows [data-item]")).to_have_count(5)
        expect(saved).to_have_count(0)


CHATS = [
    {
        "id": "c1",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "I play the oboe."},
            {"role": "tool", "content": "{}"},
            {"role": "tool", "content": "[]"},
        ],
    },
    {"id": "c2", "messages": [{"role": "user", "content": "我拉大提琴。"}]},
]


def test_an_import_counts_what_it_read_stored_and_skipped(browser: Browser, server: Server) -> None:
    file = {"name": "chats.json", "mimeType": "application/json", "buffer": json.dumps(CHATS).encode()}

    def counts(card: str) -> dict[str, str]:
        expect(page.locator(card).locator("[data-count]")).to_have_count(4)
        boxes = page.locator(card).locator("[data-count]").all()
        return {box.get_attribute("data-count") or "": box.locator("dd").inner_text() for box in boxes}

    with visit(browser, server, "eve", locale="zh-CN") as visitor:
        page = visitor.open("import")
        page.locator("#chooser").set_input_files(file)
        assert counts('[data-import="chats.json"]') == {"read": "5", "stored": "2", "known": "0", "skipped": "3"}
        reasons = page.locator('[data-import="chats.json"] li')
        expect(reasons.first).to_have_text("2 × 工具输出")
        expect(reasons.nth(1)).to_have_text("1 × 给助手的指令")
    with visit(browser, server, "eve") as visitor:
        page = visitor.open("import")
        page.locator("#chooser").set_input_files(file)
        assert counts('[data-import="chats.json"]') == {"read": "5", "stored": "0", "known": "2", "skipped": "3"}
        page.locator("#chooser").set_input_files(
            {"name": "memories.jsonl", "mimeType": "application/jsonl", "buffer": exported(server, "eve")}
        )
        memories = counts('[data-import="memories.jsonl"]')
        assert int(memories["read"]) > 0
        assert (memories["stored"], memories["known"]) == ("0", memories["read"])
        expect(page.locator("table tbody tr").first).to_contain_text("Read")


def exported(server: Server, user: str) -> bytes:
    with urllib.request.urlopen(f"{server.url}/v1/export?user_id={user}", timeout=30) as reply:
        return bytes(reply.read())


def test_each_reason_to_skip_has_chinese_words() -> None:
    known = (FOLDER / "js/words/names.js").read_text()
    skips = {*records.SKIPPED_ROLES.values(), records.NO_TEXT, records.REASONING, records.BRANCH, records.TOO_LONG}
    for reason in skips:
        assert f'"skip_{reason}"' in known


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_everybody_can_select(browser: Browser, server: Server, theme: str, width: int) -> None:
    first, second, *_ = notes_of(server, f"{theme}")
    with visit(
        browser, server, theme, color_scheme=theme, viewport={"width": width, "height": 800}, locale="zh-CN"
    ) as visitor:
        page = visitor.open("memories", tag="old")
        expect(page.locator(".rows [data-item]")).to_have_count(1)
        page = visitor.open("memories")
        select(page, first, second)
        expect(page.locator('[data-bulk="delete"]')).to_be_visible()
        assert "\n".join(serious(page)) == ""
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture(page, f"bulk-{theme}-{width}")

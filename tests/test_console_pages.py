"""The console's pages in a real browser: what an agent receives, people, changes, review, maintenance, first run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from browser import Server, action, picture, serious, visit

MEI = (
    ("2024-05-01", "I live in Shanghai."),
    ("2024-05-02", "I am a vegetarian."),
    ("2024-06-01", "My manager is Tom Baker."),
    ("2024-07-01", "Please answer in short sentences."),
    ("2024-08-01", "I work with Tom on the Apollo project."),
    ("2025-02-01", "I moved to Shenzhen."),
    ("2025-03-01", "I'm not a vegetarian any more."),
    ("2025-03-02", "The Apollo project is late."),
)


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("pages") / "memory.db")
    for at, (day, text) in enumerate(MEI):
        message = {"role": "user", "content": text, "timestamp": f"{day}T10:00:00Z"}
        server.call("POST", "memories", {"messages": [message], "session_id": f"s{at}", "wait": True}, user_id="mei")
    yield server
    server.stop()


def test_an_empty_store_leads_to_a_first_fact(browser: Browser, server: Server) -> None:
    """A new user types one sentence and sees the fact, and its answer for an agent."""
    with visit(browser, server, "newcomer") as visitor:
        page = visitor.open("search")
        expect(page.locator(".first-run")).to_contain_text("Claude Code")
        page.get_by_role("radio", name="Codex").check()
        expect(page.locator(".first-run .block")).to_contain_text("[mcp_servers.jiyi]")
        page.get_by_label("Text of the memory").fill("我吃素，对花生过敏")
        action(page, "remember").click()
        expect(page.locator("main")).to_contain_text("花生过敏")
        expect(page.locator("main")).to_contain_text("我吃素")
        page.keyboard.press("g")
        page.keyboard.press("a")
        page.get_by_label("Question or message").fill("any food allergies?")
        page.keyboard.press("Enter")
        expect(page.locator(".block")).to_contain_text("花生")
    with visit(browser, server, "小白", locale="zh-CN") as visitor:
        page = visitor.open("memories")
        page.get_by_role("button", name="添加示例").click()
        expect(page.locator("h1")).to_have_text("提问")
        expect(page.locator(".block")).to_contain_text("花生")


def test_ask_shows_the_block_and_the_reasons(browser: Browser, server: Server) -> None:
    with visit(browser, server, "mei") as visitor:
        page = visitor.open("ask", q="where do I live now?")
        block = page.locator(".block")
        expect(block).to_contain_text("I moved to Shenzhen.")
        expect(block).to_contain_text("Please answer in short sentences.")
        told = server.call("POST", "recall", {"said": "where do I live now?", "explain": True}, user_id="mei")
        assert block.inner_text() == told["block"]
        expect(page.locator(".view")).to_contain_text(f"{told['tokens']} of 1,000 tokens")
        expect(page.locator("section", has_text="in the block").locator("[data-item]")).to_have_count(len(told["used"]))
        left = page.locator("section", has=page.get_by_role("heading", name=re.compile("left out")))
        expect(left.locator("[data-item]")).to_have_count(len(told["left_out"]))
        page.get_by_label("Room for memories").select_option("200")
        expect(page.locator(".view")).to_contain_text("of 200 tokens")
        page.locator(".rows [data-item]").first.click()
        expect(page.locator(".pane-text")).to_be_visible()


def test_people_and_things_have_pages_and_are_merged_and_separated(browser: Browser, server: Server) -> None:
    with visit(browser, server, "mei") as visitor:
        page = visitor.open("people")
        subject = lambda name: page.locator(f'[data-subject="{name}"]')  # noqa: E731
        expect(subject("Apollo")).to_contain_text("project")
        expect(subject("Tom")).to_be_visible()
        page.get_by_role("radio", name="place").check()
        expect(subject("Apollo")).to_have_count(0)
        expect(subject("Shenzhen")).to_be_visible()
        page.get_by_role("radio", name="All").check()
        subject("Tom").click()
        expect(page.locator("h1")).to_have_text("Tom")
        action(page, "merge").click()
        page.get_by_label("The other name").fill("Tom Baker")
        page.get_by_role("dialog").get_by_role("button", name="Merge").click()
        expect(page.locator("h1")).to_have_text("Tom Baker")
        expect(page.locator(".view")).to_contain_text("Also called")
        expect(page.locator(".view .rows, .view .traits")).to_have_count(2)
        page.get_by_role("button", name="Separate Tom again").click()
        expect(page.locator(".view")).not_to_contain_text("Also called")
        page.get_by_role("link", name="← People & things").click()
        expect(subject("Tom")).to_be_visible()


def test_a_change_is_undone_from_the_log(browser: Browser, server: Server) -> None:
    note = server.add("log", "Tea at five")
    server.call("PATCH", f"memories/{note['id']}", {"content": "Tea at six", "reason": "moved"}, user_id="log")
    for day, text in enumerate(("I live in Oslo.", "I moved to Bergen.")):
        message = {"role": "user", "content": text, "timestamp": f"2025-01-0{day + 1}T10:00:00Z"}
        body = {"messages": [message], "session_id": f"s{day}", "wait": True}
        server.call("POST", "memories", body, user_id="log")
    gone = server.add("log", "A secret")
    server.call("DELETE", f"memories/{gone['id']}", user_id="log")
    with visit(browser, server, "log") as visitor:
        page = visitor.open("changes")
        expect(page.locator(".log-day h2")).to_contain_text("3 learned · 1 changed · 1 ended · 1 forgotten")
        expect(page.locator(".log-line del")).to_have_text("five")
        ended = page.locator(".log-line", has=page.locator(".kind-of-ended"))
        expect(ended).to_contain_text("I live in Oslo.")
        ended.get_by_role("button").click()
        expect(page.locator(".log-day h2")).to_contain_text("1 restored")
        page.locator(".log-line", has=page.locator("del")).get_by_role("button").click()
        expect(page.locator(".log-day h2")).to_contain_text("2 restored")
        page.get_by_role("radio", name="chat").check()
        expect(page.locator(".log-line")).to_have_count(2)
    held = server.call("GET", "memories", user_id="log")["items"]
    assert {"I live in Oslo.", "Tea at five"} <= {one["content"] for one in held}
    history = server.call("GET", f"memories/{note['id']}/history", user_id="log")["items"]
    assert [one["action"] for one in history] == ["add", "update", "restore"]


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_what_changed_this_week_is_counted_by_day(browser: Browser, server: Server, theme: Any, width: int) -> None:
    user = f"week {theme}"
    note = server.add(user, "Tea at five")
    server.call("PATCH", f"memories/{note['id']}", {"content": "Tea at six"}, user_id=user)
    gone = server.add(user, "A secret")
    server.call("DELETE", f"memories/{gone['id']}", user_id=user)
    now = datetime.now(UTC)
    options = {"color_scheme": theme, "viewport": {"width": width, "height": 800}, "timezone_id": "UTC"}
    with visit(browser, server, user, **options) as visitor:
        page = visitor.open("changes", week="0")
        expect(page.locator("h1")).to_have_text("What changed this week")
        today = page.locator(f'[data-day="{now:%Y-%m-%d}"]')
        for kind, many in (("learned", "1"), ("changed", "1"), ("ended", "0"), ("forgotten", "1")):
            expect(today.locator(f'[data-kind="{kind}"]')).to_have_text(many)  # of what was deleted, only that
            expect(page.locator(f'tfoot [data-kind="{kind}"]')).to_have_text(many)
        assert "\n".join(serious(page)) == ""
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture(page, f"week-{theme}-{width}")

        visitor.context.clock.set_fixed_time(now + timedelta(days=7))
        page = visitor.open("changes", week="0")
        expect(page.locator(".state")).to_contain_text("Nothing changed in this week")
        page.get_by_role("button", name="Week before").click()
        expect(page.locator("h1")).to_have_text("What changed in that week")
        expect(page.locator("tbody tr")).to_have_count(7)
        expect(today.locator('[data-kind="changed"]')).to_have_text("1")
        page.get_by_role("radio", name="All").first.check()
        expect(page.locator("table")).to_have_count(0)
        expect(page.locator(".log-line del")).to_have_text("five")


def test_adding_says_what_ended_and_deleting_what_holds_again(browser: Browser, server: Server) -> None:
    server.add("mover", "I live in Oslo.")
    with visit(browser, server, "mover") as visitor:
        page = visitor.open("memories")
        action(page, "add").click()
        page.get_by_label("Text of the memory").fill("I now live in Bergen.")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#notes")).to_contain_text("an older memory ended")
        expect(page.locator(".pane-text")).to_contain_text("Bergen")
        action(page, "delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.locator("#notes")).to_contain_text("holds again")
        expect(page.locator(".rows")).to_contain_text("I live in Oslo.")


def test_the_review_queue_by_mouse_and_keyboard(browser: Browser, server: Server) -> None:
    drafts: list[dict[str, Any]] = [
        {"content": f"Guess number {at}", "confidence": 0.3 + at / 100, "data": {}} for at in range(4)
    ]
    made = server.call("POST", "memories", {"candidates": drafts, "wait": True}, user_id="doubt")["memories"]
    with visit(browser, server, "doubt") as visitor:
        page = visitor.open("review")
        cards = page.locator("[data-review]")
        expect(cards).to_have_count(4)
        cards.first.focus()
        page.keyboard.press("y")
        expect(cards).to_have_count(3)
        expect(cards.first).to_be_focused()
        page.keyboard.press("x")
        expect(cards).to_have_count(2)
        page.locator("#notes").get_by_role("button", name="Undo").last.click()
        expect(cards).to_have_count(3)
        page.get_by_label("Select all").check()
        page.locator('[data-bulk="reject"]').click()
        expect(page.locator(".state")).to_contain_text("Nothing to review")
    states = [server.call("GET", f"memories/{one['id']}", user_id="doubt") for one in made]
    assert [one["status"] for one in states] == ["active", "archived", "archived", "archived"]
    assert states[0]["metadata"]["reviewed"] is True


def test_maintenance_saves_verifies_and_tells_the_settings(browser: Browser, server: Server) -> None:
    with visit(browser, server, "mei", accept_downloads=True) as visitor:
        page = visitor.open("maintenance")
        with page.expect_download() as saved:
            action(page, "export").click()
        assert b"Shenzhen" in saved.value.path().read_bytes()
        with page.expect_download() as saved:
            action(page, "backup").click()
        assert saved.value.path().read_bytes().startswith(b"SQLite format 3")
        action(page, "verify").click()
        expect(page.locator(".cards")).to_contain_text("no errors")
        action(page, "compress-plan").click()
        expect(page.locator(".cards")).to_contain_text("rarely used enough")
        expect(page.locator(".size-row", has_text="mei")).to_contain_text(str(len(MEI)))
        page.get_by_text(re.compile(r"All \d+ settings")).click()
        expect(page.locator("tr", has_text="search.default_mode")).to_contain_text("default")


def test_what_is_over_is_not_shown_as_current(browser: Browser, server: Server) -> None:
    with visit(browser, server, "mei") as visitor:
        page = visitor.open("profile")
        person = page.locator('[data-person="mei"]')
        expect(person.locator(".traits")).to_contain_text("Shenzhen")
        expect(person.locator(".traits")).not_to_contain_text("vegetarian")
        over = person.locator(".over-list")
        expect(over).to_contain_text("No longer (1)")
        over.locator("summary").click()
        expect(over).to_contain_text("not a vegetarian any more")
        page = visitor.open("timeline")
        expect(page.locator(".lane-name").first).to_be_visible()
        names = page.locator(".lane-name").all_inner_texts()
        assert {"Home", "Diet", "Manager", "Other facts"} <= set(names)
        assert not [name for name in names if re.search(r"\d", name)]
        diet = page.locator(".lane", has=page.locator(".lane-name", has_text="Diet")).locator(".span")
        assert diet.all_inner_texts() == ["vegetarian", "I'm not a vegetarian any more."]


def test_a_wrong_date_does_not_squash_the_timeline(browser: Browser, server: Server) -> None:
    for month in range(1, 9):
        server.add("dated", f"Note {month}", occurred_at=f"2025-0{month}-01T00:00:00Z")
    server.add("dated", "A wrong date", occurred_at="1925-01-01T00:00:00Z")
    with visit(browser, server, "dated", viewport={"width": 390, "height": 800}) as visitor:
        page = visitor.open("timeline")
        expect(page.locator(".span", has_text="A wrong date")).to_have_class(re.compile("cut"))
        early = page.locator(".span", has_text="Note 1")
        wide = early.bounding_box()
        assert wide is not None and wide["width"] > 100
        assert overlaps(page, ".tick span") == []
        action(page, "time-all").click()
        expect(page.locator(".span", has_text="A wrong date")).not_to_have_class(re.compile("cut"))
        assert early.evaluate("one => one.getBoundingClientRect().width") < 20
        action(page, "time-fit").click()
        action(page, "time-zoom_in").click()
        assert early.evaluate("one => one.getBoundingClientRect().width") != wide["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


OVERLAPS = """all => {
  const boxes = all.filter(one => one.checkVisibility()).map(one => [one.textContent, one.getBoundingClientRect()]);
  const found = [];
  for (let a = 0; a < boxes.length; a++) for (let b = a + 1; b < boxes.length; b++) {
    const [x, y] = [boxes[a][1], boxes[b][1]];
    if (x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom - 1 && y.top < x.bottom - 1)
      found.push(`${boxes[a][0]} | ${boxes[b][0]}`) }
  return found }"""


def overlaps(page: Page, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).evaluate_all(OVERLAPS)
    return found


def test_labels_of_relations_do_not_overlap(browser: Browser, server: Server) -> None:
    for city in range(12):
        for day, verb in ((1, "live in"), (2, "now live in")):
            name = f"Town{city}{'abcdefghijklmnop'[city]}"
            text = f"I {verb} {name if day == 1 else name + 'burg'}."
            message = {"role": "user", "name": f"P{city}", "content": text, "timestamp": f"2025-01-0{day}T10:00:00Z"}
            body = {"messages": [message], "session_id": f"s{city}{day}", "wait": True}
            server.call("POST", "memories", body, user_id="crowd")
    with visit(browser, server, "crowd") as visitor:
        page = visitor.open("graph")
        expect(page.locator(".graph .node").nth(15)).to_be_attached()
        assert overlaps(page, ".graph .node text") == []


def test_scores_fit_on_a_phone(browser: Browser, server: Server) -> None:
    with visit(browser, server, "mei", viewport={"width": 360, "height": 740}) as visitor:
        page = visitor.open("search", q="where do I live")
        score = page.locator(".hit .score b").first
        expect(score).to_be_visible()
        lines = score.evaluate("one => one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).fontSize)")
        assert lines < 1.8
        assert overlaps(page, ".hit-card:first-child .score, .hit-card:first-child .hit-text") == []


def test_a_long_list_keeps_few_rows_in_the_page(browser: Browser, server: Server) -> None:
    drafts = [{"text": f"Entry {at}"} for at in range(600)]
    server.call("POST", "memories", {"candidates": drafts, "wait": True}, user_id="long")
    with visit(browser, server, "long") as visitor:
        page = visitor.open("memories")
        expect(page.locator(".head")).to_contain_text("600 memories")
        for _ in range(200):
            page.mouse.wheel(0, 6000)
            page.wait_for_timeout(60)
            if page.locator(".rows", has_text="Entry 0").count() and page.get_by_text("Entry 0", exact=True).count():
                break
        expect(page.get_by_text("Entry 0", exact=True)).to_be_visible()
        assert page.locator(".rows [data-item]").count() < 200

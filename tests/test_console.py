"""The console in a real browser, on a real server: what people can do with it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

import pytest
from playwright.sync_api import Browser, Route, expect

from browser import CHAT, Server, Visit, action, item, visit

Visiting = Callable[..., AbstractContextManager[Visit]]


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("console") / "memory.db")
    for at, message in enumerate(CHAT):
        server.call("POST", "memories", {"messages": [message], "session_id": f"s{at}", "wait": True}, user_id="told")
    yield server
    server.stop()


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    """Somebody of this test's own."""
    return str(request.node.name)


@pytest.fixture
def visiting(browser: Browser, server: Server, user: str) -> Visiting:
    return partial(visit, browser, server, user)


def test_typing_finds_and_each_part_of_a_score_is_explained(visiting: Visiting, server: Server, user: str) -> None:
    wanted = server.add(user, "The spare key lies under the blue flowerpot.")
    server.add(user, "备用钥匙在蓝色花盆下面，妈妈的房间里。")
    with visiting() as visitor:
        page = visitor.open("search")
        expect(page.get_by_role("searchbox")).to_be_visible()
        page.keyboard.press("/")
        expect(page.get_by_role("searchbox")).to_be_focused()
        page.keyboard.type("where is the spare key", delay=5)
        card = page.locator(".hit-card").first
        expect(card).to_contain_text("under the blue flowerpot")
        expect(card.locator("mark").first).to_be_visible()
        assert "q=where+is+the+spare+key" in page.url

        body = {"query": "where is the spare key", "explain": True, "limit": 20}
        explanation = server.call("POST", "search", body, user_id=user)["hits"][0]["explanation"]
        card.get_by_role("button", name="Why?").click()
        rows = card.locator(".evidence [data-part]")
        shown = {row.get_attribute("data-part"): row.locator("td").last.inner_text() for row in rows.all()}
        parts = {one["name"]: one["contribution"] for one in explanation["evidence"]}
        assert shown.keys() == {name for name, by in parts.items() if abs(by) >= 0.005}
        for name, text in shown.items():
            assert float(text.replace("−", "-")) == pytest.approx(parts[name or ""], abs=0.006)
        assert not [row for row in rows.all() if len(row.locator("th span").inner_text()) < 8]  # each has a sentence
        score = float(card.locator(".evidence .outcome").inner_text())
        assert 0 <= explanation["score"] - score < 0.01
        card.get_by_text("How it came among the candidates").click()
        assert float(card.locator("details .total td").last.inner_text()) == pytest.approx(
            sum(part["contribution"] for part in explanation["parts"]), abs=0.006
        )

        item(page, wanted).click()
        expect(page.locator(".pane")).to_contain_text("under the blue flowerpot")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_hit_is_relevant_or_weak_as_the_server_says(
    visiting: Visiting, server: Server, user: str, width: int
) -> None:
    for note in ("Ana plays the cello.", "Ana plays chess.", "Ana paints."):
        server.add(user, note)
    scores = ((1.0, True), (0.6, True), (0.5961, False))

    def answer(route: Route) -> None:
        found = route.fetch().json()
        for hit, (score, relevant) in zip(found["hits"], scores, strict=True):
            hit.update(relevance_score=score, relevant=relevant)
        route.fulfill(json=found)

    with visiting(viewport={"width": width, "height": 800}) as visitor:
        visitor.context.route("**/v1/search*", answer)
        page = visitor.open("search", q="Ana")
        labels = page.locator(".hit .score")
        expect(labels).to_have_count(3)
        texts = [" ".join(label.inner_text().split()) for label in labels.all()]
        assert texts == ["1.00 relevant", "0.60 relevant", "0.59 weak"]
        for card in page.locator(".hit-card").all():
            word, text = card.locator(".score span").bounding_box(), card.locator(".hit-text").bounding_box()
            assert word and text
            assert word["x"] + word["width"] <= text["x"] or word["y"] + word["height"] <= text["y"]


def test_an_answer_that_was_overtaken_is_not_shown(visiting: Visiting, server: Server, user: str) -> None:
    server.add(user, "Tea is in the green tin.")
    server.add(user, "Coffee is in the red tin.")
    with visiting() as visitor:
        page = visitor.open("search")
        held = []
        page.route("**/v1/search*", lambda route: held.append(route) if not held else route.continue_())
        page.get_by_role("searchbox").fill("tea in the green tin")
        for _ in range(600):
            if held:
                break
            page.wait_for_timeout(100)
        page.get_by_role("searchbox").fill("coffee in the red tin")
        expect(page.locator(".hit-card").first).to_contain_text("Coffee")
        held[0].abort()  # whatever comes of the first one now, it is too late
        page.wait_for_timeout(200)
        expect(page.locator(".hit-card").first).to_contain_text("Coffee")


def test_nothing_stored_nothing_matched_and_out_of_reach_look_different(
    visiting: Visiting, server: Server, user: str
) -> None:
    with visiting() as visitor:
        page = visitor.open("search", q="anything")
        expect(page.locator(".first-run")).to_contain_text("Nothing is stored here yet")
        server.add(user, "Rain in Lisbon.")
        page = visitor.open("search", q="Rain", mode="keyword", tag="none-has-it")
        expect(page.locator(".state")).to_contain_text("Nothing matched")
        visitor.context.set_offline(True)
        page.get_by_role("searchbox").fill("Rain in")
        expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
        visitor.context.set_offline(False)
        page.get_by_role("button", name="Clear").click()
        expect(page.locator(".hit-card")).to_contain_text("Lisbon")
        visitor.complaints = [told for told in visitor.complaints if "ERR_INTERNET_DISCONNECTED" not in told]


def test_filters_and_paging(visiting: Visiting, server: Server, user: str) -> None:
    drafts = [{"content": f"Note number {at}", "tags": ["even"] if at % 2 == 0 else []} for at in range(60)]
    server.call("POST", "memories", {"candidates": drafts, "wait": True}, user_id=user)
    server.add(user, "buy oat milk", memory_type="task")
    with visiting() as visitor:
        page = visitor.open("memories")
        expect(page.locator(".head")).to_contain_text("61 memories")
        expect(page.locator(".rows [data-item]")).to_have_count(61)
        page.locator('[data-type="task"]').click()
        expect(page.locator(".rows [data-item]")).to_have_count(1)
        page.reload()
        expect(page.locator(".rows [data-item]")).to_have_count(1)
        page.locator('[data-type="task"]').click()
        action(page, "filters").click()
        page.get_by_label("Tag").fill("even")
        expect(page.locator(".head")).to_contain_text("30 memories")


def test_edit_history_and_undo(visiting: Visiting, server: Server, user: str) -> None:
    memory = server.add(user, "The meeting is on Monday.", importance=0.623)
    with visiting() as visitor:
        page = visitor.open("memories", open=memory["id"])
        action(page, "edit").click()
        page.get_by_label("Content").fill("The meeting is on Thursday.")
        page.get_by_label("Tags").fill("work,会议,")
        page.get_by_label("Reason").fill("moved by Ann")
        page.get_by_role("button", name="Save").click()
        pane = page.locator(".pane")
        expect(pane.locator(".pane-text")).to_have_text("The meeting is on Thursday.")
        expect(pane.locator(".changes del")).to_have_text("Monday")
        expect(pane.locator(".changes ins").first).to_have_text("Thursday")
        expect(pane.locator(".changes")).to_contain_text("moved by Ann")
        expect(item(page, memory)).to_contain_text("会议")
        stored = server.call("GET", f"memories/{memory['id']}", user_id=user)
        assert (stored["content"], stored["tags"]) == ("The meeting is on Thursday.", ["work", "会议"])
        assert stored["importance"] == 0.623  # which the slider cannot show exactly

        action(page, "undo").click()
        expect(pane.locator(".pane-text")).to_have_text("The meeting is on Monday.")
        stored = server.call("GET", f"memories/{memory['id']}", user_id=user)
        assert (stored["content"], stored["tags"], stored["version"]) == ("The meeting is on Monday.", [], 3)
        pane.locator('[data-restore="2"]').click()
        expect(pane.locator(".pane-text")).to_have_text("The meeting is on Thursday.")


def test_a_change_made_meanwhile_is_not_overwritten(visiting: Visiting, server: Server, user: str) -> None:
    memory = server.add(user, "The code is 1111.")
    with visiting() as visitor:
        page = visitor.open("memories", open=memory["id"])
        action(page, "edit").click()
        page.get_by_label("Content").fill("The code is 2222.")
        server.call("PATCH", f"memories/{memory['id']}", {"content": "The code is 3333."}, user_id=user)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("This memory was changed")
        expect(page.get_by_role("alert").locator("ins")).to_have_text("3333")
        assert server.call("GET", f"memories/{memory['id']}", user_id=user)["content"] == "The code is 3333."
        page.get_by_role("button", name="Overwrite it").click()
        expect(page.locator(".pane-text")).to_have_text("The code is 2222.")
        visitor.complaints = [told for told in visitor.complaints if "412" not in told]


def test_archive_and_restore(visiting: Visiting, server: Server, user: str) -> None:
    memory = server.add(user, "Old wifi password: swordfish")
    with visiting() as visitor:
        page = visitor.open("memories", open=memory["id"])
        action(page, "archive").click()
        expect(item(page, memory)).to_have_count(0)
        page.get_by_role("radio", name="Archived").check()
        expect(item(page, memory)).to_be_visible()
        page.get_by_role("button", name=re.compile("^Restore(?! this)")).click()
        expect(item(page, memory)).to_have_count(0)
        assert server.call("GET", f"memories/{memory['id']}", user_id=user)["status"] == "active"
        page.locator("#notes").get_by_role("button", name="Undo").last.click()
        expect(item(page, memory)).to_be_visible()


def test_delete_asks_first_and_then_it_is_gone(visiting: Visiting, server: Server, user: str) -> None:
    memory = server.add(user, "A secret that should go.")
    with visiting() as visitor:
        page = visitor.open("memories", open=memory["id"])
        action(page, "delete").click()
        expect(page.get_by_role("dialog")).to_contain_text("A secret that should go.")
        expect(page.get_by_role("button", name="Cancel")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert server.status(f"memories/{memory['id']}", user_id=user) == 200
        page.locator(".pane").press("#")
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(item(page, memory)).to_have_count(0)
        expect(page.locator(".pane")).to_have_count(0)
        assert server.status(f"memories/{memory['id']}", user_id=user) == 404


SEEN_PROGRESS = """() => { window.seen = [];
    new MutationObserver(all => all.forEach(one => window.seen.push(Number(one.target.ariaValueNow))))
        .observe(document.body, { subtree: true, attributeFilter: ['aria-valuenow'] }) }"""


def test_a_chat_file_is_brought_in(visiting: Visiting) -> None:
    chats = [{"id": f"chat {at}", "messages": [message]} for at, message in enumerate(CHAT)]
    with visiting() as visitor:
        page = visitor.open("import")
        page.evaluate(SEEN_PROGRESS)
        page.locator("#chooser").set_input_files(
            {"name": "聊天.json", "mimeType": "application/json", "buffer": json.dumps(chats).encode()}
        )
        card = page.locator('[data-import="聊天.json"]')
        expect(card).to_contain_text("3 conversations")
        expect(card.locator('[data-count="stored"]')).to_contain_text("3")
        seen = page.evaluate("window.seen")
        assert seen and seen == sorted(seen) and seen[-1] == 100
        expect(page.locator("table")).to_contain_text("聊天.json")
        drop = (
            "([name, text]) => { const data = new DataTransfer(); data.items.add(new File([text], name)); return data }"
        )
        data = page.evaluate_handle(drop, ["broken.json", "{not a chat"])
        page.dispatch_event(".drop-place", "drop", {"dataTransfer": data})
        expect(page.locator('[data-import="broken.json"]')).to_contain_text("could not be imported")
        expect(page.locator('[data-import="broken.json"] .problem')).not_to_be_empty()
        assert "/" not in page.locator(".view").inner_text()  # no path of the server
        page.locator('[data-import="聊天.json"]').get_by_role("link", name="Show memories").click()
        expect(page.locator(".rows")).to_contain_text("我对花生过敏")


def test_chinese_and_english(visiting: Visiting) -> None:
    with visiting(locale="zh-CN") as visitor:
        page = visitor.open("memories")
        expect(page.locator("h1")).to_have_text("记忆")
        expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
        action(page, "language").click()
        expect(page.locator("h1")).to_have_text("Memories")
        page.reload()
        expect(page.locator("h1")).to_have_text("Memories")
        expect(page.locator("html")).to_have_attribute("lang", "en")


PAPER = "getComputedStyle(document.body).backgroundColor"


def test_light_and_dark(visiting: Visiting) -> None:
    with visiting(color_scheme="dark") as visitor:
        page = visitor.open("memories")
        assert page.evaluate(PAPER) == "rgb(18, 22, 21)"
        page.emulate_media(color_scheme="light")
        assert page.evaluate(PAPER) == "rgb(246, 246, 242)"
        action(page, "theme").click()
        action(page, "theme").click()
        assert page.evaluate(PAPER) == "rgb(18, 22, 21)"
        page.reload()
        assert page.evaluate(PAPER) == "rgb(18, 22, 21)"


def test_all_of_it_by_keyboard(visiting: Visiting, server: Server, user: str) -> None:
    first = server.add(user, "Grandma's soup needs ginger.")
    server.add(user, "Grandma's soup needs time.")
    with visiting() as visitor:
        page = visitor.open("memories")
        expect(page.locator(".rows [data-item]")).to_have_count(2)
        page.keyboard.press("j")
        page.keyboard.press("j")
        expect(item(page, first)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".pane-text")).to_have_text("Grandma's soup needs ginger.")
        page.keyboard.press("e")
        page.get_by_label("Content").press("End")
        page.keyboard.type(" Lots.")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".pane-text")).to_have_text("Grandma's soup needs ginger. Lots.")
        page.keyboard.press("u")
        expect(page.locator(".pane-text")).to_have_text("Grandma's soup needs ginger.")
        page.keyboard.press("Escape")
        expect(page.locator(".pane")).to_have_count(0)
        page.keyboard.press("g")
        page.keyboard.press("s")
        page.get_by_role("searchbox").press_sequentially("soup with ginger")
        expect(page.locator(".hit-card").first).to_contain_text("ginger")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("w")
        expect(page.locator(".why")).to_be_visible()
        page.keyboard.press("/")
        expect(page.get_by_role("searchbox")).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")  # the first one cleared the field
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("Keyboard")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_timeline_shows_what_was_valid_when(browser: Browser, server: Server) -> None:
    with visit(browser, server, "told") as visitor:
        page = visitor.open("timeline", show="changed")
        anker, dji = (page.locator(".span", has_text=name) for name in ("Anker", "DJI"))
        expect(anker).to_have_class(re.compile("past"))
        expect(dji).not_to_have_class(re.compile("past"))
        slider = page.get_by_label("Time", exact=True)
        slider.evaluate("one => { one.value = one.max * 0.2; one.dispatchEvent(new Event('input')) }")
        expect(anker).not_to_have_class(re.compile("past"))
        expect(dji).to_have_class(re.compile("past"))
        anker.click()
        expect(page.locator(".pane")).to_contain_text("to 1 May 2025")
        expect(page.locator(".pane .source")).to_contain_text("I work at Anker.")
        page.locator(".pane .relation").click()
        expect(page.locator(".pane .pane-text")).to_contain_text("DJI")


def test_profile_relations_jobs_and_metrics(browser: Browser, server: Server) -> None:
    with visit(browser, server, "told") as visitor:
        page = visitor.open("profile")
        person = page.locator(".person", has=page.get_by_role("heading", name="told"))
        expect(person).to_contain_text("DJI")
        expect(person).to_contain_text("花生")
        expect(person).not_to_contain_text("Anker")
        page = visitor.open("graph")
        expect(page.locator(".graph .node")).not_to_have_count(0)
        expect(page.locator(".graph .edge").first).to_be_attached()
        expect(page.locator(".head")).to_contain_text("2 memories · 1 relation")
        expect(page.locator(".head")).not_to_contain_text("1 relations")
        page.locator(".graph .node").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".pane-text")).to_be_visible()
        page = visitor.open("jobs")
        expect(page.locator(".health")).to_contain_text("All checks passed")
        expect(page.locator(".table tbody tr")).not_to_have_count(0)
        page = visitor.open("metrics")
        expect(page.locator(".figure").first).to_contain_text("Memories")
        expect(page.locator("svg.chart")).to_have_count(7)
        expect(page.locator(".bars").first).to_contain_text("fact")

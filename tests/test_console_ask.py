"""The console's answers: with a language model and its sources, or a plain word that there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from browser import Server, picture, serious, visit
from jiyi.testing import ScriptedModel

QUESTION = "What must Mei not eat?"


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    answers = [
        json.dumps({"answer": answer, "memories": memories})
        for answer, memories in (("She must not eat peanuts.", [1]), (None, []), ("不能吃花生。", [1]))
    ]
    path = tmp_path_factory.mktemp("ask") / "memory.db"
    with ScriptedModel(answers) as model, pytest.MonkeyPatch.context() as settings:
        plain = Server(path)
        plain.add("mei", "Mei must not eat peanuts.")
        plain.stop()
        for name, value in (("MODEL", "m"), ("API_KEY", "k"), ("BASE_URL", model.base_url), ("RETRIES", "0")):
            settings.setenv(f"JIYI_LLM__{name}", value)
        server = Server(path)
        yield server
        server.stop()


def test_an_answer_links_to_its_sources_and_a_failure_is_told(browser: Browser, server: Server) -> None:
    with visit(browser, server, "mei") as visitor:
        page = visitor.open("ask")
        page.get_by_label("Question or message").fill(QUESTION)
        page.keyboard.press("Enter")
        reply = page.locator(".reply")
        expect(reply).to_contain_text("She must not eat peanuts.")
        reply.get_by_role("link", name="Mei must not eat peanuts.").click()
        expect(page.locator(".pane-text")).to_have_text("Mei must not eat peanuts.")
        expect(reply).to_contain_text("She must not eat peanuts.")  # no second question to the model
        page.get_by_label("Question or message").fill("What does Mei play?")
        page.keyboard.press("Enter")
        expect(reply).to_contain_text("Your memories do not say.")
    options = {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}, "locale": "zh-CN"}
    with visit(browser, server, "mei", **options) as visitor:
        page = visitor.open("ask", q="Mei 不能吃什么？")
        expect(page.locator(".reply")).to_contain_text("不能吃花生。")
        assert "\n".join(serious(page)) == ""
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        picture(page, "answer-dark-390")
    with visit(browser, server, "mei") as visitor:
        failed = {"title": "the language model failed", "code": "llm_failed"}
        visitor.context.route("**/v1/answer*", lambda route: route.fulfill(status=502, json=failed))
        page = visitor.open("ask", q="Does the model still answer?")
        expect(page.locator(".reply").get_by_role("alert")).to_be_visible()
        expect(page.locator(".reply").get_by_role("button", name="Try again")).to_be_visible()
        visitor.complaints = [told for told in visitor.complaints if "Failed to load resource" not in told]


def test_without_a_model_the_memories_are_shown(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    server = Server(tmp_path_factory.mktemp("plain") / "memory.db")
    try:
        server.add("mei", "Mei must not eat peanuts.")
        with visit(browser, server, "mei") as visitor:
            page = visitor.open("ask", q=QUESTION)
            expect(page.locator(".reply")).to_contain_text("No language model is set")
            expect(page.locator(".rows [data-item]").first).to_contain_text("Mei must not eat peanuts.")
    finally:
        server.stop()

"""The plots of the console's metrics: growth, recall time and relevance, each also as words and as a table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from browser import Server, picture, serious, visit


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("plots") / "memory.db")
    for text in ("The spare key lies under the flowerpot.", "Ana plays the cello.", "Rain in Lisbon."):
        server.add("mei", text)
    for query in ("Where is the spare key?", "quantum chromodynamics"):
        server.call("POST", "search", {"query": query}, user_id="mei")
    yield server
    server.stop()


@pytest.mark.parametrize(
    ("theme", "width", "language", "table"),
    [("light", 1280, "en-GB", "As a table"), ("dark", 390, "zh-CN", "以表格显示")],
)
def test_growth_recall_time_and_relevance_are_plotted(
    browser: Browser, server: Server, theme: str, width: int, language: str, table: str
) -> None:
    options = {"color_scheme": theme, "viewport": {"width": width, "height": 900}, "locale": language}
    with visit(browser, server, "mei", **options) as visitor:
        page = visitor.open("metrics")
        told = server.call("GET", "metrics")
        stored = told["memory"]["memories"] + told["memory"]["archived"]
        growth, latency, relevance = (
            page.locator(f'[data-plot="{name}"]') for name in ("growth", "latency", "relevance")
        )
        for plot in (growth, latency, relevance):
            expect(plot.get_by_role("img")).to_be_visible()
            plot.get_by_text(table).click()
            expect(plot.locator("tbody tr").first).to_be_visible()
        last = growth.locator("tbody tr").last.locator("td")
        assert last.all_inner_texts() == [str(stored), str(stored)]
        assert str(stored) in (growth.get_by_role("img").get_attribute("aria-label") or "")
        assert len(latency.locator("circle").all()) >= 2  # a median and a p95
        bars = [int(text) for text in relevance.locator("tbody td").all_inner_texts()]
        assert bars == told["memory"]["best_relevance"] and sum(bars) == 2
        good = sum(bars[12:])  # from 0.6 on
        assert f"{good} " in (relevance.get_by_role("img").get_attribute("aria-label") or "")
        assert "\n".join(serious(page)) == ""
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        relevance.scroll_into_view_if_needed()
        picture(page, f"plots-{theme}-{width}")

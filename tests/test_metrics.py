"""What is counted is what happened."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jiyi import Memory, MemoryMetrics
from jiyi.agents.tools import MemoryTools
from jiyi.cli.render import bar, spark
from jiyi.metrics import MEASURES, SECONDS, Histogram, Meter, Sample, prometheus


@given(st.lists(st.floats(0.0002, 50), min_size=20, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_lies_between_the_bounds_around_the_true_one(values: list[float], share: float) -> None:
    spread = Histogram(SECONDS)
    for value in values:
        spread.observe(value)
    judged = spread.quantile(share)
    true = float(np.quantile(values, share, method="inverted_cdf"))
    assert judged is not None
    assert true / 1.5 <= judged <= true * 1.5
    assert spread.count == len(values) and spread.total == pytest.approx(sum(values))


def test_nothing_happened_yet() -> None:
    assert Histogram(SECONDS).quantile(0.5) is None
    assert prometheus(list(Meter().samples())) == ""


def test_an_error_is_counted_and_its_time_is_not() -> None:
    meter = Meter()
    with pytest.raises(ZeroDivisionError), meter.timing("search", "hybrid"):
        raise ZeroDivisionError
    assert meter.counted("failures_total", "search") == 1
    assert meter.spread("search_seconds").count == 0


LINE = re.compile(r'^[a-z_]+(\{[a-z]+="(\\.|[^"\\\n])*"(,[a-z]+="(\\.|[^"\\\n])*")*\})? [-+0-9.e]+$')


@given(st.dictionaries(st.sampled_from(["mode", "type"]), st.text(), max_size=2), st.integers(0, 10**9))
def test_every_line_for_prometheus_is_one(labels: dict[str, str], number: int) -> None:
    """Names of types come from users: nothing in them can break out of its label."""
    spread = Histogram(SECONDS)
    spread.observe(0.2)
    text = prometheus([Sample("a", "x", "gauge", labels, number), Sample("b", "y", "histogram", labels, spread)])
    lines = [line for line in text.split("\n")[:-1] if not line.startswith("#")]
    assert len(lines) == 1 + len(SECONDS) + 1 + 2
    assert all(LINE.match(line.replace("\r", "")) for line in lines)


async def test_searches_adds_and_tools_are_counted(memory: Memory) -> None:
    await memory.add("我吃素，对花生过敏", user_id="mei", importance=0.9)
    await memory.add("The office moved to Hamburg", user_id="bob", importance=0.3)
    for _ in range(2):
        await memory.search("花生", user_id="mei")
    await memory.search("花生", user_id="nobody")
    tools = MemoryTools(memory, user_id="mei", agent_id="a")
    tools.turn()
    tools.turn()
    await tools.call("search_memories", {"query": "花生"})
    await tools.call("search_memories", "{broken")
    now = await memory.usage.metrics()
    assert now.memories == 2 and now.average_importance == pytest.approx(0.6)
    assert now.by_importance[9] == 1 and now.by_importance[3] == 1 and sum(now.by_importance) == 2
    assert now.search.count == 4 and now.add.count == 2 and now.keyword_extraction.count == 2
    assert now.search.p50 and now.search.p99 and now.search.p50 <= now.search.p99
    assert now.cache_hit_rate is not None and 0 < now.cache_hit_rate < 1
    assert (now.tool_calls, now.tool_use_rate) == (2, 0.5)
    assert now.index_coverage == now.vector_coverage == 1.0
    assert sum(now.added_by_day.values()) == 2
    assert (await memory.usage.metrics("mei")).memories == 1

    numbers = await MemoryMetrics(memory).collect("mei")
    assert numbers["total_memories"] == 1 and numbers["avg_importance"] == pytest.approx(0.9)
    assert numbers["retrieval_latency_p50"] <= numbers["retrieval_latency_p99"]
    assert numbers["cache_hit_rate"] == now.cache_hit_rate

    text = await memory.usage.prometheus()
    assert 'jiyi_tool_calls_total{tool="search_memories",outcome="failed"} 1' in text
    assert 'jiyi_searches_total{outcome="nothing"} 1' in text
    assert "jiyi_users 2" in text
    assert "花生" not in text and "mei" not in text, "what is counted names nobody"


async def test_a_failed_search_is_a_failure(deaf_memory: Memory) -> None:
    await deaf_memory.add("x", user_id="mei")
    with pytest.raises(Exception, match=r".+"):
        await deaf_memory.search("x", user_id="mei", search_mode="semantic")
    assert (await deaf_memory.usage.metrics()).failures == {"search": 1}


def test_every_measure_is_documented() -> None:
    from test_house import DOCS

    page = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert [name for name in MEASURES if f"`{name}`" not in page] == []


def test_counting_needs_no_database() -> None:
    program = "import sys, jiyi.metrics; assert 'sqlalchemy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_whatever_is_there_is_seen_in_a_plot() -> None:
    assert spark([0, 1, 1000]) == " ▁█" and spark([]) == "" and spark([0]) == " "
    assert bar(1, 10_000) == "▏" and bar(10, 10, width=4) == "████" and bar(0, 10) == ""

"""Inputs in the formats of other systems: candidates with upper-case types, summaries, tags of a model, groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jiyi import Memory, SearchMode
from jiyi.agents import MemoryHooks
from jiyi.settings import load_settings
from jiyi.testing import ScriptedLLM, WordEmbedder


async def test_a_candidate_with_an_upper_case_type_and_its_session(tmp_path: Path) -> None:
    candidates = [
        {
            "type": "PROFILE",
            "text": "更喜欢简洁直接的回答",
            "importance": 0.8,
            "tags": ["tone"],
            "source_session_id": "s1",
        },
        {"type": "TASK", "text": "Finish the memory MVP", "importance": 0.7, "tags": ["project"]},
    ]
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
        await memory.add(candidates, user_id="mei")
        found = {item.memory_type: item for item in await memory.list(user_id="mei")}
        assert found.keys() == {"profile", "task"}
        assert (found["profile"].tags, found["profile"].metadata) == (("tone",), {"source_session_id": "s1"})
        assert list(await memory.list(user_id="mei", session_id="s1")) == [found["profile"]]
        assert [hit.id for hit in await memory.search("简洁", user_id="mei", session_id="s1")] == [found["profile"].id]


@pytest.mark.parametrize(
    "given",
    [
        {
            "memory_type": "preference",
            "content": "用户偏好使用蓝色配色方案",
            "structured_data": {"category": "design", "key": "color_scheme", "value": "blue"},
            "importance_score": 0.8,
        },
        {
            "memory_type": "skill",
            "content": "Skill 'deep_research' 成功执行",
            "structured_data": {
                "skill_name": "deep_research",
                "workflow": [{"step": 1, "tool": "web_search"}, {"step": 2, "tool": "read_url"}],
            },
            "importance_score": 0.7,
        },
        {
            "memory_type": "fact",
            "content": "The user's company is TechCorp, which makes AI products",
            "structured_data": {"entity": "company", "name": "TechCorp", "industry": "AI"},
            "importance_score": 0.6,
        },
    ],
)
async def test_a_memory_with_content_and_structured_data_is_a_candidate(given: dict[str, Any], tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
        for what in (given, [given]):
            added = await memory.add(what, user_id="mei")
            [item] = await memory.list(user_id="mei")
            assert [item.id] == [one.id for one in added.memories]
            assert (item.memory_type, item.content) == (given["memory_type"], given["content"])
            assert item.data == given["structured_data"]
            assert item.importance == given["importance_score"]


async def test_a_role_makes_a_message_of_an_object(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
        added = await memory.add({"role": "user", "content": "hm", "tags": ["x"]}, user_id="mei")
        assert [item.memory_type for item in added.memories] == ["message"]


async def test_type_names_of_other_systems_mean_ours_when_stored_and_when_filtered(tmp_path: Path) -> None:
    candidates = [
        {"type": "EPISODIC", "text": "上周去了杭州西湖", "importance": 0.8},
        {"type": "user_preference", "text": "更喜欢简洁直接的回答"},
        {"type": "Recipe", "text": "三杯鸡的做法"},
    ]
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
        added = await memory.add(candidates, user_id="mei")
        assert [item.memory_type for item in added.memories] == ["episode", "preference", "Recipe"]
        assert [item.layer for item in added.memories] == ["episodic", "semantic", "semantic"]
        named = {"EPISODIC": "西湖", "user_preference": "简洁", "PREFERENCE": "简洁", "episode": "西湖"}
        for memory_type, text in named.items():
            [item] = await memory.list(user_id="mei", memory_types=[memory_type])
            assert text in item.content


async def test_types_rank_in_the_order_preference_command_output_general(tmp_path: Path) -> None:
    types = ["general", "command_output", "user_preference"]
    settings = load_settings(search={"preset": "words_and_time"})
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(), settings=settings) as memory:
        await memory.add([{"type": name, "text": "short answers in English"} for name in types], user_id="mei")
        found = await memory.search("short answers", user_id="mei")
        assert [hit.memory_type for hit in found] == ["preference", "command_output", "general"]


@pytest.mark.parametrize(
    ("summary", "fact", "preference"),
    [
        ("The user lives in Lisbon. She prefers short answers. We debugged the importer today.", "Lisbon", "short"),
        ("用户住在里斯本。用户喜欢简短的回答。今天一起修了导入程序。", "里斯本", "简短"),
    ],
)
async def test_a_summary_is_extracted_from(summary: str, fact: str, preference: str, tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
        await memory.sessions.add_summary(summary, user_id="mei", session_id="s1")
        held = [(item.memory_type, item.content) for item in await memory.list(user_id="mei")]
        assert ("episode", summary) in held
        assert any(kind == "fact" and fact in text for kind, text in held)
        assert any(preference in text for kind, text in held if kind != "episode")
        again = await memory.sessions.add_summary(summary, user_id="mei", session_id="s1")
        assert not again.created


SUMMARIES = [
    (
        "用户偏好使用蓝色配色方案。用户的公司名称是'TechCorp'，主营AI产品。用户通常在周一上午9-11点使用Agent做周报。今天上海天气晴。",
        {"preference": "蓝色", "fact": "TechCorp", "pattern": "周报"},
        "天气",
    ),
    (
        "用户偏好蓝色配色方案。用户之前做过类似的竞品分析。用户的公司是科技行业。",
        {"preference": "蓝色", "fact": "科技行业"},
        None,
    ),
    (
        "User has a peanut allergy. The user wants to be reminded to book the paediatrician on Thursday.",
        {"fact": "peanut", "task": "paediatrician"},
        None,
    ),
    (
        "Discussed a cover letter. The user works as a welder in Gdansk. The user dislikes long emails.",
        {"fact": "welder", "preference": "long emails"},
        "cover letter",
    ),
    (
        "The user goes climbing every Tuesday evening. The assistant recommended two cafes.",
        {"pattern": "climbing"},
        "cafes",
    ),
    (
        "The user decided to sell the motorbike. The user asked to be reminded to renew the insurance next month.",
        {"fact": "motorbike", "task": "insurance"},
        None,
    ),
    (
        "用户偏好用表格展示数据。用户在昆明开了一家书店。讨论了促销方案。",
        {"preference": "表格", "fact": "书店"},
        "促销",
    ),
    ("用户是素食者，对牛奶过敏。用户要求周日提醒她给妈妈打电话。", {"fact": "素食", "task": "打电话"}, None),
    ("用户喜欢看悬疑小说。用户计划十月去西安旅行。询问了签证流程。", {"preference": "悬疑", "task": "西安"}, "签证"),
    ("用户的公司名称是'云杉'，做物流软件。用户希望回答先给结论。", {"fact": "云杉", "preference": "结论"}, None),
]


@pytest.mark.parametrize(("summary", "stated", "passing"), SUMMARIES)
async def test_a_session_ends_with_what_its_summary_states(
    summary: str, stated: dict[str, str], passing: str | None, tmp_path: Path
) -> None:
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
        await MemoryHooks(memory, user_id="mei").on_session_end("s1", summary=summary)
        await memory.sessions.end("s1", user_id="mei")
        held = [(one.memory_type, one.content) for one in await memory.list(user_id="mei", session_id="s1")]
    for memory_type, words in stated.items():
        assert any(kind == memory_type and words in text for kind, text in held), held
    assert passing is None or not any(passing in text for kind, text in held if kind != "episode")


async def test_tags_of_a_model_are_stored_and_searched(tmp_path: Path) -> None:
    said = "I'm allergic to peanuts."
    proposed = {
        "messages": [1], "quote": said, "type": "fact", "text": "Mei is allergic to peanuts.", "subject": "Mei",
        "attribute": "allergy", "value": "peanuts", "importance": 0.9, "keywords": ["peanuts"],
        "tags": ["health", "#food", "a whole sentence that is certainly no tag"],
    }  # fmt: skip
    model = ScriptedLLM(json.dumps({"memories": [proposed]}))
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(), llm=model) as memory:
        await memory.add([{"role": "user", "content": said, "name": "Mei"}], user_id="mei")
        [item] = await memory.list(user_id="mei", tags=["health"])
        assert item.tags == ("health", "food")


@pytest.mark.parametrize(
    ("told", "query", "keyword", "found"),
    [
        (
            ("The router is a Fritzbox in the hallway", "The backup server runs Debian", "The web server runs Ubuntu"),
            "which server",
            "router",
            "The router is a Fritzbox in the hallway",
        ),
        (
            ("The router is a Fritzbox in the hallway", "The backup server runs Debian", "The web server runs Ubuntu"),
            "which server",
            "ubuntu",
            "The web server runs Ubuntu",
        ),
        (("数据库配置：端口 3307", "每周五部署到生产环境"), "用户之前的配置", "数据库", "数据库配置：端口 3307"),
    ],
)
@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
async def test_keywords_filter_exactly_and_are_part_of_the_question(
    told: tuple[str, ...], query: str, keyword: str, found: str, mode: SearchMode, tmp_path: Path
) -> None:
    async with Memory.open(tmp_path / "memory.db") as memory:
        for text in told:
            await memory.add(text, user_id="mei")
        answer = await memory.search(query, user_id="mei", keywords=[keyword], search_mode=mode, limit=1)
        assert [hit.content for hit in answer] == [found]
        assert (answer.query, answer.total_found) == (query, 1)
        if mode != "keyword":
            assert answer.hits[0].relevant
        none = await memory.search(query, user_id="mei", keywords=["zeppelin"], search_mode=mode)
        assert not none.hits

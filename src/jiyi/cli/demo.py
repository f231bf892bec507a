"""`jiyi demo`: play a scripted conversation on the real engine and print its results."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ..errors import InvalidInput
from ..memory import Memory
from ..models import MemoryItem, Page, Receipt, Revision, SearchResult
from ..settings import Settings
from . import render
from .session import out

CHINA = timezone(timedelta(hours=8))
MORNING = datetime(2025, 5, 12, 9, 0, tzinfo=CHINA)
NOW = datetime(2025, 6, 10, 9, 0, tzinfo=CHINA)  # fixed, so that every run shows the same scores
BEFORE = datetime(2025, 5, 20, tzinfo=CHINA)

USER = "林梅"
ASSISTANT = "Assistant"

CONVERSATION = (
    (USER, "早上好！我叫林梅。我住在杭州。我在一家地图公司写后端。"),
    (ASSISTANT, "Good morning, Mei! What are you building these days?"),
    (USER, "A route planner: parser 用 Rust 写的, API in Python with FastAPI."),
    (ASSISTANT, "Rust 加 Python，好搭配。最近顺利吗？"),
    (USER, "Since we upgraded tile-server to v2.14.3, map tiles come back blank."),
    (ASSISTANT, "I would roll back to v2.13.9 until that is fixed."),
    (USER, "好主意。对了，周五请同事吃饭：我吃素，对花生过敏。"),
    (ASSISTANT, "记住了，我找一家安静的素食餐厅。"),
    (USER, "I only drink espresso before noon, otherwise I can't sleep."),
    (ASSISTANT, "明白，下午只给你推荐花茶。"),
    (USER, "我妹妹林岚在里斯本读博士，研究候鸟，她的猫叫豆包。"),
    (USER, "Remind me to renew my passport by September."),
    (USER, "Please answer in English."),
)
A_MONTH_LATER = (
    (USER, "我六月一号搬家了，现在住在柏林。"),
    (USER, "以后请用中文回答。"),
)
WHERE = "林梅住在哪里？"
HOME = "杭州"
FORGOTTEN = "豆包"

# Each query, and the difficulty that it shows.
QUESTIONS = (
    ("过敏", "two_characters"),
    ("她什么时候喝咖啡？", "zh_to_en"),
    ("What is the cat's name?", "en_to_zh"),
    ("v2.14.3", "identifier"),
    ("林岚", "name"),
    ("用 Rust 写的 parser", "mixed"),
)
WHY = "用 Rust 写的 parser"

ENGLISH = {
    "title": "Jiyi 记忆 · long-term memory for AI agents",
    "subtitle": "One file, offline, no API key. The demo uses a temporary store.",
    "loading": "loading the built-in embedder …",
    "talk": "A conversation is added, message by message",
    "memories": "Memories are extracted",
    "memories_note": "Extracted by rules, without a model; each links to its source ({count} memories in one file):",
    "search": "Ask, in either language",
    "search_note": "Each line is one search over everything above, and its best hit:",
    "question": "question",
    "hit": "best hit",
    "two_characters": "a two-character word",
    "zh_to_en": "Chinese asks, English answers",
    "en_to_zh": "English asks, Chinese answers",
    "identifier": "an exact version number",
    "name": "a name",
    "mixed": "both languages in one query",
    "why": "Every score can be explained",
    "change": "Memories change, and their history is kept",
    "later": "A month later she says:",
    "ended": "Nothing is overwritten. The old address was superseded:",
    "ask": "Where does she live?",
    "today": "asked today",
    "before": "as of May 20",
    "forget": "Forgetting deletes the data",
    "forget_note": "Mei asks to forget the cat. Deleted: {memories} memories, {messages} message, their history.",
    "gone": "searching for it again:",
    "nothing": "nothing matched among {searched} memories",
    "next": "Next steps",
    "next_note": "Three commands to try:",
    "next_add": "add a memory",
    "next_search": "search, and explain the score",
    "next_doctor": "check this installation",
}

CHINESE = {
    "title": "Jiyi 记忆 · AI 智能体的长期记忆",
    "subtitle": "一个文件，离线运行，无需 API 密钥。演示使用临时存储。",
    "loading": "正在加载内置向量模型 …",
    "talk": "逐条添加一段对话",
    "memories": "从对话中提取记忆",
    "memories_note": "按规则提取，不用模型；每条都链接到来源消息（同一个文件中共 {count} 条）：",
    "search": "提问，中英文皆可",
    "search_note": "每一行都是对以上全部记忆的一次搜索，以及最佳结果：",
    "question": "问题",
    "hit": "最佳结果",
    "two_characters": "两个字的词",
    "zh_to_en": "中文提问，英文作答",
    "en_to_zh": "英文提问，中文作答",
    "identifier": "精确的版本号",
    "name": "人名",
    "mixed": "中英混合",
    "why": "每个分数都可以解释",
    "change": "记忆会变，历史仍可查",
    "later": "一个月后她说：",
    "ended": "不会覆盖任何内容。旧住址已被取代：",
    "ask": "她住在哪里？",
    "today": "今天问",
    "before": "回到 5 月 20 日问",
    "forget": "忘记即彻底删除",
    "forget_note": "林梅要求忘掉那只猫。已删除：{memories} 条记忆、{messages} 条消息及其历史。",
    "gone": "再搜一次：",
    "nothing": "{searched} 条记忆中没有匹配",
    "next": "下一步",
    "next_note": "试试这三条命令：",
    "next_add": "添加记忆",
    "next_search": "搜索并解释分数",
    "next_doctor": "检查安装",
}

NARRATIONS = {"en": ENGLISH, "zh": CHINESE}


WHO = "mei"
UNDERSTOOD = ("fact", "preference", "event", "task", "pattern", "skill")
NEXT = (
    ('jiyi add "我吃素，对花生过敏"', "next_add"),
    ('jiyi search "any food allergies?" --explain', "next_search"),
    ("jiyi doctor", "next_doctor"),
)


async def play(lang: str, *, quiet: bool) -> dict[str, Any]:
    """Run the demo and return the results of each scene."""
    if lang not in NARRATIONS:
        raise InvalidInput("--lang", f"must be one of {', '.join(NARRATIONS)}, not {lang!r}")
    with tempfile.TemporaryDirectory(prefix="jiyi-demo-") as folder:
        # Defaults only: neither the environment nor a settings file can point the demo at a real store.
        settings = Settings.model_construct(url=str(Path(folder) / "memory.db"))
        async with Memory.open(settings=settings) as memory:
            return await Show(memory, lang, quiet=quiet).play()


class Show:
    """Scenes of the demo; each prints and returns the engine's results."""

    def __init__(self, memory: Memory, lang: str, *, quiet: bool) -> None:
        self._memory = memory
        self._says = NARRATIONS[lang]
        self._console = out()
        self._console.quiet = quiet
        self._scene = 0

    async def play(self) -> dict[str, Any]:
        title = Text.assemble((self._says["title"], "bold"), "\n", self._says["subtitle"])
        self._console.print(Panel(title, border_style="cyan", expand=False))
        self._title("talk")
        with self._console.status(self._says["loading"]):
            await self._memory.search(WHERE, user_id=WHO)  # loads the model; there is nothing to find yet
        played = {
            "receipts": await self._talk(CONVERSATION, MORNING),
            "memories": await self._list(),
            "searches": await self._ask(),
            "why": await self._explain(),
            "history": await self._change(),
            "where": await self._where(),
            "forgotten": await self._forget(),
        }
        self._end()
        return played

    async def _talk(self, conversation: Sequence[tuple[str, str]], begins: datetime) -> list[Receipt]:
        receipts = []
        for minute, (speaker, text) in enumerate(conversation):
            message = {
                "role": "user" if speaker == USER else "assistant",
                "name": speaker,
                "content": text,
                "sent_at": begins + timedelta(minutes=minute),
            }
            session = f"demo {begins:%Y-%m-%d}"
            receipts.append(await self._memory.add([message], user_id=WHO, session_id=session))
            self._line(speaker, text, "bold cyan" if speaker == USER else "magenta")
        return receipts

    async def _list(self) -> Page:
        page = await self._memory.list(user_id=WHO, memory_types=UNDERSTOOD, limit=20)
        self._title("memories")
        self._say("memories_note", count=await self._memory.count(user_id=WHO))
        table = render.columns("type", "when", "memory")
        for memory in reversed(page.items):
            text = render.memory_text(memory.summary, *memory.keywords)
            table.add_row(memory.memory_type, render.day(memory.occurred_at, CHINA), text)
        self._show(table)
        return page

    async def _ask(self) -> list[SearchResult]:
        self._title("search")
        self._say("search_note")
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", border_style="dim")
        table.add_column(self._says["question"], width=29, overflow="fold")
        table.add_column("", justify="right")
        table.add_column(self._says["hit"], overflow="fold")
        answers = []
        for query, kind in QUESTIONS:
            found = await self._search(query)
            table.add_row(render.memory_text(query, self._says[kind]), *self._best(found))
            answers.append(found)
        self._show(table)
        return answers

    async def _explain(self) -> SearchResult:
        found = await self._memory.search(WHY, user_id=WHO, limit=1, asked_at=NOW, explain=True)
        self._title("why")
        for hit in found.hits:
            self._show(Text.assemble(("? ", "dim"), (WHY, "bold"), ("  →  ", "dim"), hit.summary))
            if hit.explanation is not None:
                self._show(render.explanation(hit.explanation))
        return found

    async def _change(self) -> list[Revision]:
        self._title("change")
        home = await self._home(BEFORE)
        self._say("later")
        await self._talk(A_MONTH_LATER, NOW)
        self._say("ended")
        changes = list(await self._memory.history(home.id, user_id=WHO))
        self._show(render.timeline(changes, with_times=False))
        return changes

    async def _home(self, as_of: datetime) -> MemoryItem:
        page = await self._memory.list(user_id=WHO, memory_types=("fact",), as_of=as_of, limit=20)
        return next(memory for memory in page.items if HOME in memory.content)

    async def _where(self) -> dict[str, SearchResult]:
        answers = {
            label: await self._memory.search(
                WHERE, user_id=WHO, memory_types=("fact",), limit=3, as_of=as_of, asked_at=NOW
            )
            for label, as_of in (("today", None), ("before", BEFORE))
        }
        grid = Table(box=None, show_header=False, pad_edge=False)
        for label, found in answers.items():
            grid.add_row(render.memory_text(self._says["ask"], self._says[label]), *self._best(found))
        self._show(grid)
        return answers

    async def _forget(self) -> dict[str, Any]:
        found = await self._search(FORGOTTEN)
        deletion = await self._memory.delete(found.hits[0].id, user_id=WHO, with_sources=True)
        self._title("forget")
        self._say("forget_note", memories=deletion.memories, messages=deletion.messages)
        after = await self._memory.search(FORGOTTEN, user_id=WHO, search_mode="keyword", asked_at=NOW)
        answer = after.hits[0].summary if after.hits else self._says["nothing"].format(searched=after.searched)
        self._show(Text.assemble(self._says["gone"] + " ", (FORGOTTEN, "bold"), ("  →  ", "dim"), answer))
        return {"deletion": deletion, "after": after}

    def _end(self) -> None:
        self._title("next")
        self._say("next_note")
        grid = Table(box=None, show_header=False, pad_edge=False)
        for command, what in NEXT:
            grid.add_row(Text(command, style="bold green"), Text(self._says[what], style="dim"))
        self._show(grid)

    async def _search(self, query: str) -> SearchResult:
        return await self._memory.search(query, user_id=WHO, limit=3, asked_at=NOW)

    def _best(self, found: SearchResult) -> tuple[Text, Text]:
        if not found.hits:
            return Text("—"), Text(self._says["nothing"].format(searched=found.searched), style="red")
        return render.score_text(found.hits[0].relevance_score), Text(found.hits[0].summary)

    def _title(self, key: str) -> None:
        self._scene += 1
        text = Text(f"{self._scene} · {self._says[key]}", style="bold cyan")
        self._console.print()
        self._console.print(Rule(text, align="left", style="dim"))

    def _say(self, key: str, **values: object) -> None:
        self._console.print()
        self._console.print(self._says[key].format(**values))

    def _line(self, who: str, text: str, style: str) -> None:
        grid = Table(box=None, show_header=False, pad_edge=False)
        grid.add_column(width=10, style=style)
        grid.add_column(overflow="fold")
        grid.add_row(who, text)
        self._console.print(grid)

    def _show(self, renderable: RenderableType) -> None:
        self._console.print(Padding(renderable, (1, 0, 0, 2), expand=False))

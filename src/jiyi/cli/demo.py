"""`jiyi demo`: play a scripted conversation on the real engine and print its results."""

import tempfile
import tomllib
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from importlib.resources import files
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

WHO = "mei"
USER = "林梅"
WHERE = "林梅住在哪里？"
HOME = "杭州"
FORGOTTEN = "豆包"
WHY = "用 Rust 写的 parser"
UNDERSTOOD = ("fact", "preference", "event", "task", "pattern", "skill")
SCRIPT = tomllib.loads(files(__package__).joinpath("demo.toml").read_text("utf-8"))


async def play(lang: str, *, quiet: bool) -> dict[str, Any]:
    """Run the demo and return the results of each scene."""
    if lang not in SCRIPT["narrations"]:
        raise InvalidInput("--lang", f"must be one of {', '.join(SCRIPT['narrations'])}, not {lang!r}")
    with tempfile.TemporaryDirectory(prefix="jiyi-demo-") as folder:
        # Defaults only: neither the environment nor a settings file can point the demo at a real store.
        settings = Settings.model_construct(url=str(Path(folder) / "memory.db"))
        async with Memory.open(settings=settings) as memory:
            return await Show(memory, lang, quiet=quiet).play()


class Show:
    """Scenes of the demo; each prints and returns the engine's results."""

    def __init__(self, memory: Memory, lang: str, *, quiet: bool) -> None:
        self._memory = memory
        self._says = SCRIPT["narrations"][lang]
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
            "receipts": await self._talk(SCRIPT["conversation"], MORNING),
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
            receipts.append(await self._memory.add([message], user_id=WHO, session_id=session, user_names=[USER]))
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
        for query, kind in SCRIPT["questions"]:
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
        await self._talk(SCRIPT["a_month_later"], NOW)
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
        for command, what in SCRIPT["next"]:
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

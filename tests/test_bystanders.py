"""A verb on one memory or session changes no other of the same user, however alike it was made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from jiyi import Memory
from jiyi.testing import Clock, WordEmbedder
from support import DAY, MONDAY, dump, stored

Step = Callable[[Memory], Awaitable[Any]]
GROUPS = {
    "a": (
        "My bicycle was repaired in the old harbour shop by Anna Weber, it cost 42 euros.",
        "My laptop was repaired in the old harbour shop by Tom Beckett, it cost 310 euros.",
        "My watch was repaired in the old harbour shop by Ruth Adler, it cost 77 euros.",
    ),
    "c": (
        "We watched a film about penguins in the small cinema on Elm Street.",
        "We watched a film about dolphins in the small cinema on Elm Street.",
        "We watched a film about reindeer in the small cinema on Elm Street.",
    ),
    "b": (
        "我从小就特别害怕蜘蛛，看见就跑。",
        "我从小就特别害怕老鼠，看见就跑。",
        "我从小就特别害怕毒蛇，看见就跑。",
    ),
}
TOLD = {
    "a": ("I live in Paris.", "I moved to Rome.", "My dog is called Rex.", "I am allergic to peanuts."),
    "b": ("I work at Acme.", "I now work at Initech.", "My sister is called Lena.", "I am learning Spanish."),
}
NOTES = {"a": ("likes jasmine tea", "keeps bees"), "b": ("plays the cello", "collects stamps")}
AT = MONDAY + 60 * DAY


async def prepare(memory: Memory, clock: Clock) -> set[str]:
    """Make two groups of everything; return the ids of the second one, messages included."""
    for group, texts in GROUPS.items():
        await memory.add([{"content": text} for text in texts], user_id="mei", memory_type="fact", session_id=group)
        clock.now += timedelta(hours=1)
    clock.now += 60 * DAY
    assert (await memory.maintenance.compress(user_id="mei")).made == 3
    for group, texts in TOLD.items():
        for day, text in enumerate(texts):
            clock.now += timedelta(hours=1)
            message = {"role": "user", "content": text, "sent_at": AT + day * DAY}
            await memory.add([message], user_id="mei", session_id=f"{group}{day}")
        for text in NOTES[group]:
            note = {"content": text, "memory_key": text}
            await memory.add(note, user_id="mei", session_id=f"{group}0", agent_id=group)
            await memory.update(text, user_id="mei", content=f"{text} a lot")
    everything = [item for status in ("active", "archived") for item in await stored(memory, status=status)]
    past = await stored(memory, as_of=AT + DAY)
    words = ("害怕", *(text.rstrip(".") for text in TOLD["b"]), *NOTES["b"])
    others = [item for item in (*everything, *past) if any(word in item.content for word in words)]
    return {item.id for item in others} | {name for item in others for name in item.source_ids}


async def of(memory: Memory, words: str, verb: Any, *, status: Any = "active", **how: Any) -> Any:
    found = [item.id for item in await stored(memory, status=status) if words in item.content]
    return await verb(found[0], user_id="mei", **how)


STEPS: dict[str, Step] = {
    "add": lambda memory: memory.add("likes green tea too", user_id="mei", session_id="a0", agent_id="a"),
    "add again": lambda memory: memory.add("likes jasmine tea a lot", user_id="mei", session_id="a0", agent_id="a"),
    "say": lambda memory: memory.add(
        [{"content": "I moved to Oslo.", "sent_at": AT + 9 * DAY}], user_id="mei", session_id="a9"
    ),
    "update": lambda memory: memory.update("keeps bees", user_id="mei", content="keeps hens", tags=["farm"]),
    "restore": lambda memory: memory.restore("keeps bees", user_id="mei", to_version=1),
    "end": lambda memory: memory.update("likes jasmine tea", user_id="mei", valid_to=AT),
    "undo of one": lambda memory: memory.maintenance.undo("likes jasmine tea", user_id="mei"),
    "undo of a session": lambda memory: memory.maintenance.undo(user_id="mei", session_id="a9"),
    "end session": lambda memory: memory.sessions.end("a0", user_id="mei"),
    "undo of parts": lambda memory: memory.maintenance.undo(user_id="mei", session_id="c"),
    "undo of a part": lambda memory: of(memory, "My bicycle", memory.maintenance.undo, status="archived"),
    "delete a part": lambda memory: of(memory, "My laptop", memory.delete, status="archived"),
    "delete with sources": lambda memory: of(memory, "peanuts", memory.delete, with_sources=True),
    "delete a successor": lambda memory: of(memory, "Rome", memory.delete),
    "delete a key": lambda memory: memory.delete("likes jasmine tea", user_id="mei"),
    "synonyms": lambda memory: memory.synonyms.add([("tea", "oolong")], user_id="mei"),
    "summary": lambda memory: memory.sessions.add_summary("They spoke of tea.", user_id="mei", session_id="a0"),
}


def rows_about(ids: set[str], path: Path) -> dict[str, list[tuple[Any, ...]]]:
    about = {table: [row for row in rows if ids.intersection(map(str, row))] for table, rows in dump(path).items()}
    return {table: rows for table, rows in about.items() if rows and table not in ("changes", "recalls")}


async def test_a_verb_changes_nothing_beside_what_it_is_about(path: Path) -> None:
    with Clock(MONDAY) as clock:
        async with Memory.open(path, embedder=WordEmbedder(512)) as memory:
            others = await prepare(memory, clock)
            assert len(others) > 15
            before = rows_about(others, path)
            assert len(before) >= 8
            for name, step in STEPS.items():
                clock.now += timedelta(hours=1)
                mine = dump(path)["memories"]
                await step(memory)
                assert rows_about(others, path) == before, name
                assert name in ("end session", "synonyms", "undo of a session") or dump(path)["memories"] != mine, name

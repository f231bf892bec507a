"""`python -m bench.compress`: names, numbers and dates kept by compression, without a language model or with one.

Each conversation of the corpus is added to a store, half a year passes, and its memories are compressed. Also counted
are the words that the annotations require of a memory of a message.

With a language model, `LLM_BASE_URL`, `LLM_MODEL` and `LLM_API_KEY` name it, and `--llm N` takes so many
conversations.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from bench.extraction_corpus import Conversation, load_corpus
from jiyi import CompressPlan, Memory
from jiyi.embed import BuiltinEmbedder, Embedder
from jiyi.keep.condense import missing, particulars
from jiyi.settings import Settings, load_settings
from jiyi.settings_files import own_program
from jiyi.testing import Clock

HALF_A_YEAR = timedelta(days=180)


@dataclass(slots=True)
class Kept:
    """Totals before and after."""

    conversations: int = 0
    members: int = 0
    texts: int = 0
    letters_before: int = 0
    letters_after: int = 0
    by_model: int = 0
    bundles: int = 0
    particulars: int = 0
    particulars_kept: int = 0
    marked: int = 0
    marked_kept: int = 0
    lost: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.particulars_kept / max(self.particulars, 1)

    @property
    def marked_share(self) -> float:
        return self.marked_kept / max(self.marked, 1)


async def measure(
    conversations: Sequence[Conversation], folder: Path, embedder: Embedder, settings: Settings | None = None
) -> Kept:
    kept = Kept()
    plain = load_settings(llm={"model": None})
    for one in conversations:
        kept.conversations += 1
        where = folder / f"{one.id}.db"
        with Clock(one.messages[-1].sent_at) as clock:
            async with Memory.open(where, settings=plain, embedder=embedder) as memory:
                messages = [
                    {
                        "role": said.role,
                        "name": said.speaker,
                        "content": said.text,
                        "timestamp": said.sent_at.isoformat(),
                    }
                    for said in one.messages
                ]
                await memory.add(messages, user_id=one.user_id, session_id=one.id, group_id=one.group_id)
            clock.now += HALF_A_YEAR
            async with Memory.open(where, settings=settings or plain, embedder=embedder) as memory:
                plan = await memory.maintenance.compress_plan(user_id=one.user_id)
                _count(kept, plan)
                done = await memory.maintenance.compress(user_id=one.user_id, plan=plan)
                assert done.bundles == plan.bundles, "compress did not follow its plan"
                pages = [
                    await memory.list(user_id=one.user_id, memory_types=types, limit=1000)
                    for types in (None, ["message"])
                ]
        _count_marked(kept, one, "\n".join(item.content for page in pages for item in page.items))
    return kept


def _count(kept: Kept, plan: CompressPlan) -> None:
    for bundle in plan.bundles:
        wanted = {each for member in bundle.members for each in particulars(member.text)}
        lost = missing(wanted, "\n".join(bundle.texts))
        kept.bundles += 1
        kept.members += len(bundle.members)
        kept.texts += len(bundle.texts)
        kept.letters_before += sum(len(member.text) for member in bundle.members)
        kept.letters_after += sum(map(len, bundle.texts))
        kept.by_model += bundle.made_by != "extract"
        kept.particulars += len(wanted)
        kept.particulars_kept += len(wanted) - len(lost)
        kept.lost += lost
        kept.notes += [bundle.note] if bundle.note else []


def _count_marked(kept: Kept, one: Conversation, left: str) -> None:
    """Count required words of expected memories that are still in any memory."""
    for entry in one.expected:
        said = " ".join(one.messages[at].text for at in entry.messages).lower()
        for words in entry.must_contain:
            there = [word for word in words if word != "!" and word.lower() in said]
            if there:
                kept.marked += 1
                found = any(word.lower() in left.lower() for word in there)
                kept.marked_kept += found
                kept.lost += [] if found else [f"{one.id}: {there[0]}"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.compress", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("tests/corpus/dev"))
    parser.add_argument("--llm", type=int, default=0, help="conversations to compress with the language model")
    given = parser.parse_args()
    conversations = load_corpus([given.data])
    settings = load_settings(llm={"model": None})
    if given.llm:
        with own_program():
            settings = load_settings()
        step = max(len(conversations) // given.llm, 1)
        conversations = conversations[::step][: given.llm]
    with tempfile.TemporaryDirectory(prefix="jiyi-compress-") as folder:
        kept = asyncio.run(measure(conversations, Path(folder), BuiltinEmbedder(), settings))
    print(f"{kept.conversations} conversations, {kept.members} memories became {kept.texts} in {kept.bundles} bundles")
    print(
        f"{kept.letters_before:,} letters became {kept.letters_after:,}; {kept.by_model} bundles by the language model"
    )
    print(f"names, numbers, dates kept: {kept.particulars_kept} of {kept.particulars} ({kept.share:.1%})")
    print(f"marked words still there:   {kept.marked_kept} of {kept.marked} ({kept.marked_share:.1%})")
    print("lost:", ", ".join(kept.lost) or "nothing")
    for note in kept.notes:
        print("refused:", note)


if __name__ == "__main__":
    main()

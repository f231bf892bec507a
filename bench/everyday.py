"""`python -m bench.everyday`: weeks of ordinary chats, then the questions an agent would ask.

A question is RIGHT when everything an agent would notice is right:

answerable  one of the first 3 hits contains the answer and scores 0.6 or more; no hit before it at 0.6 or more says
            something outdated or false (`never`); the context block of 500 tokens contains the answer, no small talk
            (`junk`) and no line twice
absent      no hit at 0.6 or more, and the context block has at most 2 lines

Columns: top1, top3: the answer is among the first 1 or 3 hits, at any score; conf3: among the first 3 at 0.6 or more;
inctx: the context block contains it; answered: an absent question got a hit at 0.6 or more; misled: a hit at 0.6 or
more matches `never` and ranks above the answer; stale: the block matches `never` at all; junk, dup: the block contains
small talk, or a line that repeats another; lines: lines per block.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from jiyi import Hit, Memory, Receipt
from jiyi.errors import InvalidInput

from .console import printable, run
from .measures import RELEVANT_FROM
from .models import Calls, open_model

CONTEXT_TOKENS = 500
LONGEST_WAIT_S = 7200.0  # for a language model on one session
BULLET = re.compile(r"^\s*[-*•] ")
BULLET_AND_DATE = re.compile(r"^[-*•]\s*(\([^)]*\)\s*)?")
WORD = re.compile(r"[a-z0-9']+|[\u4e00-\u9fff]")


class StoryModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class StoryMessage(StoryModel):
    role: str
    text: str
    name: str | None = None


class Session(StoryModel):
    at: datetime
    messages: tuple[StoryMessage, ...]


class Question(StoryModel):
    """`must`: alternative answers, each a list of patterns that all match; empty if there is no answer."""

    q: str
    kind: str
    must: tuple[tuple[str, ...], ...]
    never: tuple[str, ...] = ()


class Story(StoryModel):
    id: str
    language: str
    user: str
    sessions: tuple[Session, ...]
    asked_at: datetime
    questions: tuple[Question, ...]
    junk: tuple[str, ...] = ()


class Stories(StoryModel):
    stories: tuple[Story, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    kind: str
    language: str
    answerable: bool
    right: bool
    top1: bool
    top3: bool
    conf3: bool
    inctx: bool
    answered: bool
    misled: bool
    stale: bool
    junk: bool
    dup: bool
    lines: int


@dataclass(frozen=True, slots=True)
class Result:
    """A scored question with what was found, for `--show`."""

    story: Story
    question: Question
    score: Score
    hits: Sequence[tuple[float, str]]
    lines: Sequence[str]


def load(path: Path) -> tuple[Story, ...]:
    try:
        data = path.read_bytes()
        text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        return Stories.model_validate_json(text).stories
    except (OSError, EOFError) as error:
        raise InvalidInput("--data", f"{path} cannot be read: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidInput("--data", f"{path}, {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


async def fill(memory: Memory, story: Story) -> list[Receipt]:
    """Add the sessions in order, each after the memories of the one before it: a slow model may take minutes."""
    receipts = []
    for number, session in enumerate(story.sessions):
        receipt = await memory.add(
            [
                {
                    "role": message.role,
                    "content": message.text,
                    "sent_at": session.at + timedelta(seconds=40 * at),
                    "name": message.name or (story.user if message.role == "user" else None),
                }
                for at, message in enumerate(session.messages)
            ],
            user_id=story.id,
            session_id=f"{story.id}-{number}",
            user_names=[story.user],
            wait=False,
        )
        receipts.append(await memory.jobs.wait(receipt, user_id=story.id, timeout=LONGEST_WAIT_S))
    return receipts


async def ask(memory: Memory, story: Story, question: Question) -> Result:
    found = await memory.search(question.q, user_id=story.id, limit=5, asked_at=story.asked_at)
    hits = [(hit.relevance_score, await _hit_text(memory, story, hit)) for hit in found.hits]
    block = await memory.context(question.q, user_id=story.id, max_tokens=CONTEXT_TOKENS, asked_at=story.asked_at)
    lines = [BULLET_AND_DATE.sub("", line).strip() for line in block.splitlines() if BULLET.match(line)]
    return Result(story, question, score(story, question, hits, lines), hits, lines)


async def _hit_text(memory: Memory, story: Story, hit: Hit) -> str:
    """Speaker and full text of a hit."""
    item = await memory.get(hit.id, user_id=story.id)
    return f"{item.data.get('speaker') or ''}: {item.content}\n{hit.summary or ''}"


def score(story: Story, question: Question, hits: Sequence[tuple[float, str]], lines: Sequence[str]) -> Score:
    def answers(text: str) -> bool:
        return any(all(re.search(pattern, text, re.I) for pattern in patterns) for patterns in question.must)

    def outdated(text: str) -> bool:
        return any(re.search(pattern, text, re.I) for pattern in question.never)

    relevant = [text for value, text in hits if value >= RELEVANT_FROM]
    first = next((at for at, text in enumerate(relevant) if answers(text)), len(relevant))
    misled = any(map(outdated, relevant[:first]))
    junk = any(line.endswith(small_talk) for line in lines for small_talk in story.junk)
    dup = repeats(lines)
    conf3 = any(answers(text) for value, text in hits[:3] if value >= RELEVANT_FROM)
    inctx = answers("\n".join(lines))
    right = conf3 and inctx and not (misled or junk or dup) if question.must else not relevant and len(lines) <= 2
    return Score(
        kind=question.kind,
        language=story.language,
        answerable=bool(question.must),
        right=right,
        top1=any(answers(text) for _, text in hits[:1]),
        top3=any(answers(text) for _, text in hits[:3]),
        conf3=conf3,
        inctx=inctx,
        answered=bool(relevant),
        misled=misled,
        stale=outdated("\n".join(lines)),
        junk=junk,
        dup=dup,
        lines=len(lines),
    )


def repeats(lines: Sequence[str]) -> bool:
    """Return True if nine tenths of a line's words are in another line."""
    bags = [set(WORD.findall(line.lower())) for line in lines]
    return any(
        other_at != at and len(bag & other) / len(bag) >= 0.9 and (len(other) > len(bag) or other_at < at)
        for at, bag in enumerate(bags)
        for other_at, other in enumerate(bags)
        if bag
    )


async def measure(
    stories: Sequence[Story], *, show: bool, model: str | None = None, replies: Path | None = None
) -> list[Score]:
    """Score the questions of some stories. `model`: `replay:FILE`, or the name of one at LLM_BASE_URL."""
    scores, calls, problems = [], Calls(replies), Counter[str]()
    models, kept = open_model(model, calls), 0
    for story in stories:
        with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder:
            async with Memory.open(Path(folder) / "memory.db", llm=models(story.id)) as memory:
                for receipt in await fill(memory, story):
                    problems.update(receipt.problems)
                    kept += sum(one.memory_type != "message" for one in receipt.memories)
                for question in story.questions:
                    result = await ask(memory, story, question)
                    scores.append(result.score)
                    if show and not result.score.right:
                        print(printable("\n".join(_explain(result))))
    if model is not None:
        messages = sum(len(session.messages) for story in stories for session in story.sessions)
        print(f"\n{kept} memories from {messages} messages", *calls.lines(messages), sep="\n")
        print(*(printable(f"{count} x {problem}") for problem, count in problems.most_common(40)), sep="\n")
    return scores


def _explain(result: Result) -> Iterator[str]:
    question, found = result.question, result.score
    yield f"\n{result.story.id} [{question.kind}] {question.q}  must {question.must} never {question.never}"
    flags = ("top1", "top3", "conf3", "inctx") if found.answerable else ("answered",)
    yield "  " + ", ".join(f"{name} {getattr(found, name)}" for name in (*flags, "misled", "stale", "junk", "dup"))
    yield from (f"  {value:.2f} {' / '.join(text.split())[:110]}" for value, text in result.hits[:3])
    yield from (f"    | {line[:110]}" for line in result.lines)


def print_table(scores: Sequence[Score]) -> None:
    groups: dict[str, list[Score]] = {}
    for found in scores:
        for name in ("all", found.language, f"· {found.kind}"):
            groups.setdefault(name, []).append(found)
    print(
        f"\n{'':16s}{'n':>5s}  RIGHT | answerable: top1   top3  conf3  inctx | absent: answered"
        " | all: misled  stale   junk    dup  lines"
    )
    for name, group in sorted(groups.items(), key=lambda item: (item[0].startswith("·"), item[0])):
        answerable = [found for found in group if found.answerable]
        absent = [found for found in group if not found.answerable]
        found_shares = " ".join(_share(answerable, column) for column in ("top1", "top3", "conf3", "inctx"))
        faults = " ".join(_share(group, column) for column in ("misled", "stale", "junk", "dup"))
        print(
            f"{name:16s}{len(group):5d} {_share(group, 'right')} |       {found_shares} |"
            f"          {_share(absent, 'answered')} |    {faults} {sum(s.lines for s in group) / len(group):5.1f}"
        )


def _share(scores: Sequence[Score], column: str) -> str:
    return f"{100 * sum(getattr(found, column) for found in scores) / len(scores):6.1f}" if scores else "     –"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.everyday", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", required=True, type=Path, metavar="FILE", help="stories: .json or .json.gz")
    add("--story", metavar="ID", action="append", help="only this story; can be repeated")
    add("--limit", type=int, metavar="N", help="only the first N stories")
    add("--model", metavar="MODEL", help="a language model: replay:FILE, or the name of one at LLM_BASE_URL")
    add("--replies", type=Path, metavar="FILE", help="append the model's replies there, as JSON lines")
    add("--show", action="store_true", help="print every question that is not RIGHT")
    add("--json", type=Path, metavar="FILE", help="write the share of RIGHT questions of each group there")
    given = parser.parse_args(arguments)
    return run(lambda: _run(given))


def _run(given: argparse.Namespace) -> None:
    stories = [story for story in load(given.data) if given.story is None or story.id in given.story][: given.limit]
    if not stories:
        raise InvalidInput("--story", f"{', '.join(map(repr, given.story or ()))} is not in {given.data}")
    began = time.perf_counter()
    scores = asyncio.run(measure(stories, show=given.show, model=given.model, replies=given.replies))
    print_table(scores)
    print(f"{time.perf_counter() - began:.0f} s")
    if given.json:
        groups = {"all", *(found.language for found in scores), *(found.kind for found in scores)}
        shares = {
            name: [found.right for found in scores if name in ("all", found.language, found.kind)]
            for name in sorted(groups)
        }
        rows = {name: {"n": len(right), "right": sum(right) / len(right)} for name, right in shares.items()}
        given.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

"""Reading the best candidates together with the query. Evidence orders them, the reader reads them in this order up to
a budget of tokens, and `score.py` makes one probability of what is known of each."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .. import threads
from ..index.query import Candidates, IndexQuery
from ..languages import sentences
from ..languages.terms import tokens
from ..languages.words import language, width
from ..models import MemoryItem
from ..reader import USER, Passage, Reader
from ..roles import teller_of
from ..text.passages import passages
from .hits import BEGINNING
from .presets import Ranking
from .query import Query
from .rank import RankedHit, legs_of, shortlist
from .score import Score, score

logger = logging.getLogger(__name__)

LONG = 320  # width of a text that is cut to the sentences which share most words with the query
MAX_CUT = 300  # width of what is read of such a text
MOST_LOOKED_AT = 100_000  # characters of it
MOST_CUTS = 2  # pieces of it that are read
WHOLE = 0.8  # share of a message's words from which on a derived memory is shown in its place
PAIR_TOKENS = 4  # marks between the texts of a pair
BYTES_PER_TOKEN = 3  # of English letters and Chinese characters alike, roughly


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A candidate: a message with the memories derived from it, or one of those alone."""

    id: str  # of its best member
    members: tuple[str, ...]
    succeeds: tuple[str, ...]  # ids of outdated messages that it replaces
    before: str | None  # id of the message before
    has_ended: bool
    is_partly_over: bool
    inputs: Mapping[str, float] = field(default_factory=dict)  # of the score, as far as they need no text


def statements(candidates: Candidates, query: Query, index_query: IndexQuery, ranking: Ranking) -> list[Statement]:
    """Return the statements that are worth a closer look, in the order of the candidates' weighted sums."""
    scores, places = shortlist(candidates, query, legs_of(query, index_query), ranking)
    if not len(places):
        return []
    order = places[np.argsort(-scores.total[places], kind="stable")]
    evidence = candidates.evidence(order)
    columns = evidence.columns
    members: dict[int, list[int]] = {}
    for at, statement in enumerate(candidates.statement[order].tolist()):
        members.setdefault(statement, []).append(at)
    named = {
        "similarity": candidates.semantic[order] if index_query.vector is not None else None,
        "by the assistant": columns["assistant"],
        "asks": columns["asks"],
        "small talk": columns["small_talk"],
        "no answer": columns["non_answer"],
        "joke or quote": columns["unreal"],
        "general knowledge": columns["knowledge"],
        "by a named person": columns.get("speaker"),
        "at a named time": None if candidates.time is None else candidates.time[order],
    }
    inputs = {name: np.asarray(values, np.float64) for name, values in named.items() if values is not None}
    ids: list[str] = candidates.ids[order].tolist()
    old, new = candidates.successions
    return [
        Statement(
            id=ids[group[0]],
            members=tuple(sorted(ids[at] for at in group)),
            succeeds=tuple(map(str, candidates.ids[old[candidates.statement[new] == statement]])) if len(old) else (),
            before=evidence.previous[group[0]] if evidence.previous else None,
            has_ended=candidates.over is not None and bool(candidates.over[order[group[0]]]),
            is_partly_over=candidates.partly_over is not None and bool(candidates.partly_over[order[group]].any()),
            inputs={name: float(values[group[0]]) for name, values in inputs.items()},
        )
        for statement, group in members.items()
    ]


def needed(candidates: Sequence[Statement]) -> list[str]:
    """Return the ids of all memories that reading takes."""
    found = [member for one in candidates for member in (*one.members, *one.succeeds)]
    return list(dict.fromkeys([*found, *(one.before for one in candidates if one.before is not None)]))


def judged(
    reader: Reader, query: Query, candidates: Sequence[Statement], found: Mapping[str, MemoryItem], budget: int
) -> tuple[list[RankedHit], str | None]:
    """Read the statements up to a budget of tokens and return a hit for each, best first, with the problem if reading
    failed: then evidence alone decides."""
    asked = frozenset(tokens(query.text))
    hits, problem, left = [], None, budget
    for one in candidates:
        threads.check()
        memories = [found[member] for member in one.members if member in found]
        if not memories:
            continue
        shown = _shown(one, memories)
        before = found[one.before].content if one.before is not None and one.before in found else ""
        wordings = _wordings(one, shown, memories, found)
        inputs = {**one.inputs, **_of_texts(query.text, asked, shown, before)}
        if left > 0 and problem is None:
            wanted = [(memory, passage) for memory in wordings for passage in _passages(memory, asked, before)]
            left -= sum(_tokens(query.text, passage) for _, passage in wanted)
            try:
                logits = reader.answers(query.text, [passage for _, passage in wanted])
                read = [(logit, memory) for logit, (memory, _) in zip(logits, wanted, strict=True) if logit is not None]
            except Exception as error:  # of a caller's own class: the hits are there without it
                logger.warning("the reader failed", exc_info=error)
                problem = f"hits are ranked without reading them: the reader failed ({type(error).__name__})"
            else:
                if read:
                    best, answering = max(read, key=lambda pair: pair[0])
                    inputs = {"reader": best, **inputs}
                    shown = answering if answering.id in one.members else shown
        scored = score(inputs, query.text, reader.id, has_ended=one.has_ended, explain=query.explain)
        hits.append(_hit(one, shown, scored))
    return sorted(hits, key=lambda one: (-one.score, -one.logit)), problem


def _hit(one: Statement, shown: MemoryItem, scored: Score) -> RankedHit:
    return RankedHit(
        id=shown.id,
        score=scored.value,
        logit=scored.logit,
        members=one.members,
        succeeds=one.succeeds,
        partly_over=one.is_partly_over,
        outdated=one.has_ended,
        evidence=scored.parts,
    )


def _shown(one: Statement, memories: Sequence[MemoryItem]) -> MemoryItem:
    """Return what to show of a statement: the message, or a memory derived from it that says all of it or that still
    holds where a part of the message has ended."""
    messages = [memory for memory in memories if memory.memory_type == "message"]
    derived = [memory for memory in memories if memory.memory_type != "message"]
    if not messages:
        return next((memory for memory in memories if memory.id == one.id), memories[0])
    says_all = len(derived) == 1 and width(derived[0].content) >= WHOLE * width(messages[0].content)
    if derived and (says_all or one.is_partly_over):
        return next((memory for memory in derived if memory.id == one.id), derived[0])
    return messages[0]


def _wordings(
    one: Statement, shown: MemoryItem, memories: Sequence[MemoryItem], found: Mapping[str, MemoryItem]
) -> list[MemoryItem]:
    """Return the memories to read: what is shown, the facts that a language model worded, and what it replaces:
    我搬到成都了 answers 我住在哪里 because 我住在上海 does."""
    worded = [memory for memory in memories if memory.data.get("extractor") == "llm" and memory is not shown]
    still_holds = [memory for memory in memories if memory.memory_type != "message"] if one.is_partly_over else []
    replaced = [found[old] for old in one.succeeds if old in found]
    return list({memory.id: memory for memory in (shown, *worded, *still_holds, *replaced)}.values())


def _passages(memory: MemoryItem, asked: frozenset[str], before: str) -> list[Passage]:
    """Return what is read of a memory: all of a short one; of a long one the pieces that share most words."""
    speaker = _speaker(memory)
    text = memory.content
    if width(text) <= LONG:
        return [Passage(text, speaker, before)]
    parts = passages(text, memory.data) or _pieces(text[:MOST_LOOKED_AT])
    shared = [len(asked.intersection(tokens(part[:BEGINNING]))) for part in parts]
    best = sorted(sorted(range(len(parts)), key=lambda at: (-shared[at], at))[:MOST_CUTS])
    return [Passage(parts[at][:MAX_CUT], speaker, parts[at - 1][-MAX_CUT:] if at else before) for at in best]


def _pieces(text: str) -> list[str]:
    """Divide a text into pieces of some sentences."""
    pieces = [""]
    for start, end in sentences(text):
        if width(pieces[-1]) + width(text[start:end]) > MAX_CUT and pieces[-1]:
            pieces.append("")
        pieces[-1] = f"{pieces[-1]} {text[start:end]}".strip()
    return pieces


def _speaker(memory: MemoryItem) -> str:
    """Return who said it, as the reader knows people: the user by the role, others by name."""
    if memory.data.get("extractor") == "llm":
        return ""
    teller = teller_of(memory.data, memory.user_id)
    if teller is None:
        return USER
    return teller.name if teller.kind == "person" and teller.name else "assistant"


def _of_texts(query: str, asked: frozenset[str], shown: MemoryItem, before: str) -> dict[str, float]:
    """Return the inputs of the score that need the texts."""
    present = {*tokens(shown.content[:BEGINNING]), *tokens(str(shown.data.get("speaker") or ""))}
    some = max(len(asked), 1)
    return {
        "words": len(asked & present) / some,
        "words of the message before": len(asked.intersection(tokens(before[:BEGINNING]))) / some,
        "derived": float(shown.memory_type != "message"),
        "other language": float({language(query), language(shown.content)} == {"en", "zh"}),
    }


def _tokens(question: str, passage: Passage) -> int:
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in (question, passage.text, passage.before))
    return size // BYTES_PER_TOKEN + PAIR_TOKENS

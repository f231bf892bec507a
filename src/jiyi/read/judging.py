"""Reading the best candidates together with the query. Evidence orders them, the reader reads them in this order up to
a budget of tokens, and `score.py` makes one probability of what is known of each."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from .. import threads
from ..index.query import Candidates, IndexQuery
from ..languages import sentences
from ..languages.terms import tokens
from ..languages.words import language, normalise, width
from ..models import UNSURE, MemoryItem, ScorePart
from ..reader import USER, Passage, Reader
from ..reader.pairs import BEFORE_TOKENS, QUESTION_TOKENS, STATEMENT_TOKENS
from ..roles import role_kind, teller_of
from ..text.passages import passages
from .hits import BEGINNING
from .presets import Ranking
from .query import LEGS, Query, asks_assistant, asks_nothing, is_keywords, proper_words
from .rank import RankedHit, legs_of, parts_at, shortlist
from .score import ACROSS, Score, score

logger = logging.getLogger(__name__)

LONGEST_QUERY = 300  # characters; a longer one is no question
LONG = 320  # width of a text that is cut to the sentences which share most words with the query
MAX_CUT = 300  # width of what is read of such a text
MOST_LOOKED_AT = 100_000  # characters of it
MOST_CUTS = 2  # pieces of it that are read
WHOLE = 0.8  # share of a message's words from which on a derived memory is shown in its place
LEAST_CONFIDENCE = 0.01
KINDS = {  # inputs, and the kinds of sentences that set them
    "small talk": ("smalltalk",),
    "no answer": ("nonanswer",),
    "joke or quote": ("joke", "quote"),
    "general knowledge": ("knowledge", "answer"),
}
STATED = {"small talk": 0.0, "no answer": 0.0}  # of what was found worth keeping
TELLS_NOTHING = ("asks", "small talk", "by the assistant")  # inputs
PARTLY_READ = "some hits are ranked without reading them: there was no more time"
PAIR_TOKENS = 4  # marks between the texts of a pair
ALSO_READ_TOKENS = 500  # for memories that are read whether or not evidence finds them, beyond the budget
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
    parts: tuple[ScorePart, ...] = ()  # of the weighted sum, if they are asked for


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The statements that are worth a closer look, best first, and the number of other candidates that match."""

    statements: Sequence[Statement]
    others: int


def statements(candidates: Candidates, query: Query, index_query: IndexQuery, ranking: Ranking) -> Shortlist:
    """Return the statements that are worth a closer look, in the order of the candidates' weighted sums."""
    scores, places = shortlist(candidates, query, legs_of(query, index_query), ranking)
    places = np.concatenate([places, _places(candidates, frozenset(query.also_read), places)])
    if not len(places):
        return Shortlist((), 0)
    order = places[np.argsort(-scores.total[places], kind="stable")]
    kinds = candidates.kind.names(order)
    before = None if candidates.message_before is None else candidates.message_before.names(order)
    members: dict[int, list[int]] = {}
    for at, statement in enumerate(candidates.statement[order].tolist()):
        members.setdefault(statement, []).append(at)
    named = {
        "similarity": candidates.semantic[order] if index_query.vector is not None else None,
        "asks": candidates.asks[order],
        **{name: np.array([kind in group for kind in kinds]) for name, group in KINDS.items()},
        "by a named person": None if candidates.speaker is None else candidates.speaker[order],
        "at a named time": None if candidates.time is None else candidates.time[order],
    }
    inputs = {name: np.asarray(values, np.float64) for name, values in named.items() if values is not None}
    ids: list[str] = candidates.ids[order].tolist()
    old, new = candidates.successions
    found = [
        Statement(
            id=ids[group[0]],
            members=tuple(sorted(ids[at] for at in group)),
            succeeds=tuple(map(str, candidates.ids[old[candidates.statement[new] == statement]])) if len(old) else (),
            before=None if before is None else before[group[0]],
            has_ended=candidates.over is not None and bool(candidates.over[order[group[0]]]),
            is_partly_over=candidates.partly_over is not None and bool(candidates.partly_over[order[group]].any()),
            inputs={name: float(values[group[0]]) for name, values in inputs.items()},
            parts=parts_at(scores, int(order[group[0]])) if query.explain else (),
        )
        for statement, group in members.items()
    ]
    return Shortlist(found, int(np.count_nonzero(scores.matched) - np.count_nonzero(scores.matched[places])))


def _places(candidates: Candidates, ids: frozenset[str], known: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the places of these ids that are not known."""
    if not ids:
        return np.empty(0, np.intp)
    places = [at for at, name in enumerate(candidates.ids[:]) if name in ids]
    return np.setdiff1d(np.array(places, np.intp), known)


def looked_at(memories: Iterable[MemoryItem]) -> int:
    """Return the number of characters in which words of a query are looked for."""
    return sum(min(len(memory.content), BEGINNING) for memory in memories)


def is_readable(query: Query) -> bool:
    """Return True for what a reader was made for: not dialogues, long texts or searches by words only."""
    return not query.turns and query.mode != "keyword" and len(query.text) <= LONGEST_QUERY


def needed(candidates: Sequence[Statement]) -> list[str]:
    """Return the ids of all memories that reading takes."""
    found = [member for one in candidates for member in (*one.members, *one.succeeds)]
    return list(dict.fromkeys([*found, *(one.before for one in candidates if one.before is not None)]))


def judged(
    reader: Reader | None, query: Query, candidates: Sequence[Statement], found: Mapping[str, MemoryItem], budget: int
) -> tuple[list[RankedHit], str | None]:
    """Read the statements up to a budget of tokens, first those that the query names, and return a hit for each, with
    the problem if reading failed or took too long. Without a reader, and in languages that it does not know, evidence
    alone decides."""
    by_words = "text" in LEGS[query.mode]
    asked = frozenset(tokens(query.text)) if by_words else frozenset[str]()
    bare = by_words and is_keywords(query)
    nothing = asks_nothing(query)  # whatever has the same words does not answer it
    reads, hits, problem = reader is not None and budget > 0 and not nothing, [], None
    also_read, allowed = frozenset(query.also_read), _Budget(budget, query.reading_s)
    for one in sorted(candidates, key=lambda one: also_read.isdisjoint(one.members)):
        threads.check()
        memories = [found[member] for member in one.members if member in found]
        if not memories:
            continue
        shown = _shown(one, memories)
        before = found[one.before].content[:BEGINNING] if one.before is not None and one.before in found else ""
        inputs = {**one.inputs, **_of_texts(query, asked, shown, before)}
        inputs[ACROSS] = inputs["other language"] * inputs.get("similarity", 0.0)
        is_named = not also_read.isdisjoint(one.members)
        room = allowed.room(is_named)
        is_beyond = nothing or (reads and room <= 0)
        if reader is not None and reads and not is_beyond:
            try:
                reading = _read(reader, query.text, _wordings(one, shown, memories, found), asked, before, room)
            except Exception as error:  # of a caller's own class: the hits are there without it
                logger.warning("the reader failed", exc_info=error)
                problem = f"hits are ranked without reading them: the reader failed ({type(error).__name__})"
                reads = False
            else:
                if reading is not None:
                    allowed.spend(is_named, reading.tokens)
                    inputs["reader"] = reading.logit
                    shown = reading.memory if reading.memory.id in one.members else shown
        scored = score(
            inputs,
            query.text,
            None if reader is None else reader.id,
            confidence=_confidence(shown),
            holds_all=bare and inputs["words"] == 1.0 and not any(map(inputs.get, TELLS_NOTHING)),
            has_ended=one.has_ended,
            is_beyond=is_beyond,
            explain=query.explain,
        )
        hits.append(_hit(one, shown, scored, named=is_named))
    return hits, problem or (PARTLY_READ if allowed.is_late else None)


class _Budget:
    """Tokens that may be read, of statements that the query names and of others, and the time for it, which counts from
    the end of the first reading: that one may load the reader."""

    def __init__(self, tokens: int, seconds: float | None) -> None:
        self._left = {True: ALSO_READ_TOKENS, False: tokens}
        self._seconds = seconds
        self._until: float | None = None
        self.is_late = False

    def room(self, is_named: bool) -> int:
        """Return the number of tokens that are left."""
        room = self._left[is_named]
        self.is_late |= room > 0 and self._until is not None and monotonic() > self._until
        return 0 if self.is_late else room

    def spend(self, is_named: bool, tokens: int) -> None:
        self._left[is_named] -= tokens
        if self._seconds is not None and self._until is None:
            self._until = monotonic() + self._seconds


@dataclass(frozen=True, slots=True)
class _Reading:
    """The wording of a statement that answers best, and what reading has cost."""

    logit: float
    memory: MemoryItem
    tokens: int


def _read(
    reader: Reader, question: str, wordings: Sequence[MemoryItem], asked: frozenset[str], before: str, budget: int
) -> _Reading | None:
    """Read the wordings of a statement, the first one and others within the budget; None in a language that the reader
    does not know."""
    best, spent = None, 0
    for memory in wordings:
        if spent >= budget:
            break
        wanted = _passages(memory, asked, before[:MAX_CUT])
        spent += sum(_tokens(question, passage) for passage in wanted)
        answers = zip(wanted, reader.answers(question, wanted), strict=True)
        logits = [logit for _, logit in answers if logit is not None]
        if logits and (best is None or max(logits) > best[0]):
            best = max(logits), memory
    return None if best is None else _Reading(*best, tokens=spent)


def _confidence(shown: MemoryItem) -> float:
    """Return how sure it is that a model's memory is true; 1 for all others and where it is sure enough."""
    unsure = shown.data.get("extractor") == "llm" and shown.confidence < UNSURE
    return max(shown.confidence, LEAST_CONFIDENCE) if unsure else 1.0


def _hit(one: Statement, shown: MemoryItem, scored: Score, *, named: bool) -> RankedHit:
    return RankedHit(
        id=shown.id,
        score=scored.value,
        logit=scored.logit,
        outdated=one.has_ended,
        named=named,
        parts=one.parts,
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
    text = memory.content if memory.memory_type == "message" else memory.dated_text
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


def _of_texts(query: Query, asked: frozenset[str], shown: MemoryItem, before: str) -> dict[str, float]:
    """Return the inputs of the score that need the texts."""
    is_assistants = role_kind(shown.data.get("role")) == "assistant"
    text = shown.content[:BEGINNING]
    present = {*tokens(text), *tokens(str(shown.data.get("speaker") or ""))}
    some = max(len(asked), 1)
    proper = [word for word in proper_words(query.text) if word in asked]
    return {
        "words": len(asked & present) / some,
        "by the assistant": float(is_assistants and not asks_assistant(query.text)),
        "names missing": sum(word not in present for word in proper) / max(len(proper), 1),
        "quoted words": float(bool(asked) and any(normalise(phrase) in normalise(text) for phrase in query.phrases)),
        "words of the message before": len(asked.intersection(tokens(before[:BEGINNING]))) / some,
        "derived": float(shown.memory_type != "message"),
        **(STATED if shown.memory_type != "message" else {}),
        "other language": float({language(query.text), language(shown.content)} == {"en", "zh"}),
    }


def _tokens(question: str, passage: Passage) -> int:
    """Estimate what is read of a question, a passage and the message before it."""
    read = ((question, QUESTION_TOKENS), (passage.text, STATEMENT_TOKENS), (passage.before, BEFORE_TOKENS))
    sizes = (min(len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN, most) for text, most in read)
    return sum(sizes) + PAIR_TOKENS

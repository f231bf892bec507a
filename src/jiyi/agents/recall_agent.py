"""An agent that plans several searches for a need, merges their hits, and names the parts without any."""

import asyncio
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from importlib.resources import files
from typing import Any, Literal

from pydantic import Field, ValidationError

from .. import validation
from ..engine import fence_of
from ..errors import InvalidInput
from ..languages.dates import dates
from ..languages.sentences import split_sentences
from ..languages.terms import query_keywords
from ..languages.words import is_stop_word
from ..languages.words import language as language_of
from ..memory import Memory
from ..models import RELEVANT, Hit, SearchMode, SearchResult, Value, utc_now
from ..text.fence import Fence, harmless, named
from .chat import Chat, ask
from .tools import ToolLanguage, notes
from .tools.inputs import SearchMemoriesInput

_MAX_PARTS = 6
_MAX_SEARCHES = 12
_MAX_KEYWORDS = 6
_AND = re.compile(r"[;；\n]+|以及|还有|另外|\band also\b|\bas well as\b|\band\b", re.IGNORECASE)
_COMMA = re.compile(r"，|,(?!\d)")
# Words of a need that suggest memory types.
_CUES: dict[tuple[str, ...], re.Pattern[str]] = {
    types: re.compile(rf"{chinese}|\b(?:{english})\b", re.IGNORECASE)
    for types, chinese, english in (
        (("preference",), "喜欢|偏好|爱好|口味|习惯|风格", r"prefer\w*|favou?rites?|likes?|tastes?|styles?"),
        (
            ("skill", "lesson", "pattern"),
            "怎么做|如何|步骤|流程|方法|做法",
            "how (?:to|do|did)|steps?|workflows?|procedures?",
        ),
        (("task",), "待办|任务|计划|要做|截止", "to-?dos?|tasks?|plans?|planned|deadlines?"),
        (("profile", "fact"), "谁|名字|叫什么|住在|工作|公司", "who|names?|lives?|works?|jobs?|company"),
        (("event", "episode", "message"), "什么时候|发生|去过", "when|happened|went|trips?|met"),
    )
}

_TEXTS = tomllib.loads(files(__package__).joinpath("recall_agent.toml").read_text("utf-8"))


class PlannedSearch(Value):
    """A search for one part of a need."""

    part: str
    query: str
    keywords: tuple[str, ...] | None = None
    memory_types: tuple[str, ...] | None = None
    time_range: tuple[datetime | None, datetime | None] | None = None
    search_mode: SearchMode | None = None


class Recollection(Value):
    """Hits for a need, best first, and the parts of the need without a relevant hit."""

    need: str
    hits: tuple[Hit, ...]
    missing: tuple[str, ...]
    searches: tuple[PlannedSearch, ...]
    planned_by: Literal["rules", "model"]
    problems: tuple[str, ...] = ()
    fence: Fence = Field(default_factory=Fence, exclude=True, repr=False)  # of the store

    def text(self, language: ToolLanguage | None = None) -> str:
        """Render for a model or a person; text of memories is fenced as data."""
        language = language or ("zh" if language_of(self.need) == "zh" else "en")
        texts = _TEXTS[language]
        lines = [texts["nothing"]]
        if self.hits:
            lines = [texts["found"].format(count=len(self.hits)), notes(self.hits, language, self.fence)]
        if self.missing:
            lines.append(texts["missing"].format(missing="; ".join(map(named, self.missing))))
        return "\n".join(lines)


class MemRecallAgent:
    """Plans and runs several searches for a need, by rules or with a model if a `chat` is given.

    recall = await MemRecallAgent(memory, user_id="mei").recall("她上周的计划，以及她的口味偏好")
    """

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: str,
        agent_id: str | None = None,
        group_id: str | None = None,
        chat: Chat | None = None,
    ) -> None:
        validation.name("user_id", user_id)
        self._chat = chat
        self._memory = memory
        self._search = partial(memory.search, user_id=user_id, agent_id=agent_id, group_id=group_id)

    async def recall(self, need: str, *, limit: int = 8, min_relevance_score: float = 0.0) -> Recollection:
        """Plan, search and merge. A part without a relevant hit is missing; its weak hits come last."""
        validation.text("need", need, longest=validation.MAX_QUERY)
        validation.whole("limit", limit)
        searches, planned_by, problems = await self._plan(need)
        results = await asyncio.gather(*(self._run(search, min_relevance_score, limit) for search in searches))
        found = list(zip(searches, results, strict=True))
        answered = {search.part for search, result in found if any(_answers(search, hit) for hit in result.hits)}
        relevant = _merge(hit for search, result in found for hit in result.hits if _answers(search, hit))
        weak = _merge(hit for search, result in found if search.part not in answered for hit in result.hits)
        known = {hit.id for hit in relevant}
        degraded = dict.fromkeys(problem for result in results for problem in result.degraded)
        return Recollection(
            need=need,
            hits=tuple([*relevant, *(hit for hit in weak if hit.id not in known)][:limit]),
            missing=tuple(dict.fromkeys(search.part for search in searches if search.part not in answered)),
            searches=tuple(searches),
            planned_by=planned_by,
            problems=(*problems, *degraded),
            fence=await fence_of(self._memory),
        )

    async def _run(self, search: PlannedSearch, least: float, limit: int) -> SearchResult:
        return await self._search(
            search.query,
            keywords=search.keywords,
            memory_types=search.memory_types,
            time_range=search.time_range,
            search_mode=search.search_mode,
            min_relevance_score=0.0 if search.time_range else least,
            limit=limit,
        )

    async def _plan(self, need: str) -> tuple[list[PlannedSearch], Literal["rules", "model"], tuple[str, ...]]:
        if self._chat is None:
            return plan_by_rules(need), "rules", ()
        language: ToolLanguage = "zh" if language_of(need) == "zh" else "en"
        prompt = _TEXTS[language]["plan"].format(need=harmless(need), now=utc_now().date().isoformat())
        try:
            reply = await ask(self._chat, [{"role": "user", "content": prompt}])
            return read_plan(reply), "model", ()
        except Exception as error:  # noqa: BLE001 - a model can fail in any way; the rules need none
            problem = f"the model gave no plan ({type(error).__name__}: {error}); planned by rules"
            return plan_by_rules(need), "rules", (problem,)


def plan_by_rules(need: str) -> list[PlannedSearch]:
    """Plan searches for each part of a need: the part itself, its keywords, its memory types, and its times."""
    planned: list[PlannedSearch] = []
    now = utc_now()
    for part in _parts(need):
        planned.append(PlannedSearch(part=part, query=part))
        words = tuple(query_keywords(part)[:_MAX_KEYWORDS])
        if words:
            planned.append(PlannedSearch(part=part, query=" ".join(words), keywords=words, search_mode="keyword"))
        types = tuple(name for names, cue in _CUES.items() if cue.search(part) for name in names)
        if types:
            planned.append(PlannedSearch(part=part, query=part, memory_types=types))
        planned += [
            PlannedSearch(part=part, query=part, time_range=(span.start, span.end)) for span in dates(part, now)[:2]
        ]
    return planned[: 2 * _MAX_SEARCHES]


def _parts(need: str) -> list[str]:
    pieces = (piece for sentence in split_sentences(need) for piece in _AND.split(sentence))
    parts = (part.strip(" ,，.。?？!！、") for piece in pieces for part in _clauses(piece))
    return list(dict.fromkeys(part for part in parts if len(part) > 1))[:_MAX_PARTS] or [need.strip()]


def _clauses(piece: str) -> list[str]:
    """Divide at commas. A clause that only names a time, or nothing, stays with the next one."""
    clauses: list[str] = []
    waiting = ""
    for clause in _COMMA.split(piece):
        waiting = f"{waiting} {clause}".strip()
        if _names_something(clause):
            clauses.append(waiting)
            waiting = ""
    if waiting and clauses:
        clauses[-1] = f"{clauses[-1]} {waiting}"
    return clauses or [piece]


def _names_something(clause: str) -> bool:
    for span in reversed(dates(clause, utc_now())):
        clause = clause[: span.at[0]] + clause[span.at[1] :]
    return any(not is_stop_word(word) for word in query_keywords(clause))


def read_plan(reply: str) -> list[PlannedSearch]:
    """Read the searches in a model's reply. Models add too many filters: each query is also searched without them."""
    planned: list[PlannedSearch] = []
    for given in _searches(reply)[: _MAX_SEARCHES // 2]:
        search = _validated(given)
        if search is None:
            continue
        bare = PlannedSearch(part=search.query, query=search.query)
        filters = search.model_dump(include={"keywords", "memory_types", "time_range", "search_mode"})
        narrow = PlannedSearch(part=search.query, query=search.query, **filters)
        planned += [bare] if narrow == bare else [narrow, bare]
    if not planned:
        raise InvalidInput("plan", "has no valid search")
    return planned


def _validated(given: Any) -> SearchMemoriesInput | None:
    """Validate a search of a model, or at least its query."""
    query = given.get("query") if isinstance(given, dict) else None
    for written in (given, {"query": query}):
        try:
            return SearchMemoriesInput.model_validate(written)
        except ValidationError:
            continue
    return None


def _searches(reply: str) -> list[Any]:
    """Find the searches in a text: a JSON object or list of them, or the complete ones if it is cut off."""
    decoder = json.JSONDecoder()
    whole: list[Any] = []
    end = 0
    for start in (found.start() for found in re.finditer(r"[{\[]", reply)):
        if start < end:
            continue
        try:
            value, end = decoder.raw_decode(reply, start)
        except (ValueError, RecursionError):
            continue
        searches = value.get("searches", [value]) if isinstance(value, dict) else value
        whole += [search for search in searches if isinstance(search, dict)] if isinstance(searches, list) else []
    return whole


def _answers(search: PlannedSearch, hit: Hit) -> bool:
    """Return True for a relevant hit; at a time that the need names, every hit is one."""
    return search.time_range is not None or hit.relevance_score >= RELEVANT


def _merge(hits: Iterable[Hit]) -> list[Hit]:
    """Keep each memory once, with its best score; of equal ones, those that more searches found come first."""
    best: dict[str, Hit] = {}
    times: Counter[str] = Counter()
    for hit in hits:
        times[hit.id] += 1
        best[hit.id] = max(best.get(hit.id, hit), hit, key=lambda one: one.relevance_score)
    return sorted(best.values(), key=lambda hit: (-hit.relevance_score, -times[hit.id], hit.id))

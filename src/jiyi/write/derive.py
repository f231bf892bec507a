"""From a conversation to drafts: cut it into units, run the extractors on them, and check the drafts.

A unit is a stretch of conversation about one thing. A new one begins after a pause, with another topic, or when the one
before has grown long. Each message is decided on from the unit so far, so that message after message gives the same
units as all at once.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

from .. import threads, validation
from ..errors import InvalidInput
from ..ids import new_id
from ..languages.terms import exact_hash, tokens
from ..roles import is_instruction, is_person
from ..settings import ExtractionSettings, UserWishes
from ..store.write_set import NewMessage, StoredMessage, UnitPart
from ..text.fence import blank_context
from ..text.passages import summarise
from ..text_cache import text_cache
from .build import Context
from .drafts import COMPARED, Draft, Extracted, Extractor, Known, Said, Unit
from .quotes import in_whose_words

T = TypeVar("T")

UNIT_GAP = timedelta(hours=1)  # a longer pause starts a new unit
UNIT_MESSAGES = 40  # maximum messages of a unit
UNIT_CHARACTERS = 24_000  # a unit with more takes no further message
HISTORY_MESSAGES = 12  # earlier messages given to extractors
MIN_UNIT_MESSAGES = 4  # before a change of topic counts
TOPIC_MESSAGES = 6  # the last messages that define the topic
TOPIC_WORDS = 6  # different words that a message needs to start a topic

_TURN = re.compile(
    r"^\W*(?:by the way|btw|anyway|on (?:another|a different) note|(?:to )?chang\w+ (?:the )?(?:subject|topic)"
    r"|(?:new|different|another) (?:topic|subject|question)|unrelated"
    r"|换个话题|换一个话题|说点别的|聊点别的|另一个问题|另外(?:问|说|一件)|顺便(?:问|说|提)|对了|话说回来)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    units: tuple[UnitPart, ...] = ()
    drafts: tuple[Draft, ...] = ()
    problems: tuple[str, ...] = ()


async def derive(
    new: Sequence[NewMessage],
    before: Sequence[StoredMessage],
    context: Context,
    extractors: Sequence[Extractor],
    settings: ExtractionSettings,
    known: Callable[[Sequence[Said]], Awaitable[tuple[Known, ...]]] | None = None,
) -> Derived:
    """Derive drafts from new messages; `before` are the earlier messages of the same scope, oldest first.

    `known` finds the stored memories that some messages may be about."""
    size = sum(len(message.text) for message in (*new, *before))
    said, earlier, open_id, stretches = await threads.run(size, _stretches, new, before)
    if not said:
        return Derived()
    units = []
    instructions, categories = wishes(context, settings)
    for at, messages in enumerate(stretches):
        units.append(
            Unit(
                id=open_id if at == 0 and open_id else new_id(),
                messages=tuple(messages),
                history=tuple(earlier[-HISTORY_MESSAGES:]),
                known=() if known is None else await known(messages),
                user_id=context.user_id,
                user_names=context.user_names,
                session_id=context.session_id,
                group_id=context.group_id,
                instructions=instructions,
                categories=categories,
            )
        )
        earlier.extend(messages)
    found = [
        some if isinstance(some, Extracted) else Extracted(drafts=tuple(some))
        for some in await _all_of(extract(unit) for extract in extractors for unit in units)
    ]
    proposed = [draft for some in found for draft in some.drafts]
    size = sum(len(message.text) for message in said) if proposed else 0
    drafts, problems = await threads.run(size, _checked, proposed, [*said, *earlier], settings)
    problems += dict.fromkeys(problem for some in found for problem in some.problems)
    in_a_unit = {message.id for message in new if isinstance(message, StoredMessage) and message.unit_id}
    parts = [_part(unit, in_a_unit) for unit in units]
    return Derived(units=tuple(filter(None, parts)), drafts=tuple(drafts), problems=tuple(problems))


def wishes(context: Context, settings: ExtractionSettings) -> tuple[str | None, tuple[str, ...]]:
    """Return the instructions and categories for a language model: of the store, of its user, and of the call."""
    own = settings.users.get(context.user_id, UserWishes())
    instructions = "\n".join(filter(None, (settings.instructions, own.instructions, context.instructions)))
    categories = dict.fromkeys((*settings.categories, *own.categories, *context.categories))
    return instructions or None, tuple(categories)


def _stretches(
    new: Sequence[NewMessage], before: Sequence[StoredMessage]
) -> tuple[list[Said], list[Said], str | None, list[list[Said]]]:
    """Return the new messages and those before them, the unit that the first new ones continue, if any, and the new
    ones of each unit."""
    said, earlier = _said(new), _said(before)
    last = next((message.unit_id for message in reversed(before) if message.unit_id is not None), None)
    ids = {message.id for message in before if last is not None and message.unit_id == last}
    grows, stretches = segment(said, [one for one in earlier if one.id in ids])
    return said, earlier, last if grows else None, stretches


async def _all_of(work: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for all, then raise the first failure: what the others have asked a model for is not lost."""
    found = await asyncio.gather(*work, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if not isinstance(one, BaseException)]


def _said(messages: Sequence[NewMessage]) -> list[Said]:
    """Return the messages that contain text. Recalled text is blanked, not cut out, so that spans stay valid."""
    told = [(message, blank_context(message.text)) for message in messages if not is_instruction(message.role)]
    return [
        Said(id=message.id, role=message.role, speaker=message.speaker, text=text, sent_at=message.sent_at)
        for message, text in told
        if text.strip()
    ]


def _part(unit: Unit, in_a_unit: set[str]) -> UnitPart | None:
    messages = [message for message in unit.messages if message.id not in in_a_unit]
    if not messages:
        return None
    return UnitPart(
        id=unit.id,
        message_ids=tuple(message.id for message in messages),
        subject=None,
        summary=summarise(" / ".join(message.text for message in messages)),
        participants=tuple(dict.fromkeys(message.speaker or message.role for message in messages)),
        started_at=min(message.sent_at for message in messages),
        ended_at=max(message.sent_at for message in messages),
    )


def segment(
    messages: Sequence[Said], open_unit: Sequence[Said], *, most: int = UNIT_MESSAGES
) -> tuple[bool, list[list[Said]]]:
    """Cut messages into units. Returns True if the first one continues the open unit, and the messages of each."""
    unit = list(open_unit)
    stretches: list[list[Said]] = []
    grows = False
    for message in messages:
        begins = _begins_unit(message, unit, most)
        if not stretches:
            grows = not begins
        if begins:
            unit = []
        if begins or not stretches:
            stretches.append([])
        unit.append(message)
        stretches[-1].append(message)
    return grows, stretches


def _begins_unit(message: Said, unit: Sequence[Said], most: int) -> bool:
    if not unit or abs(message.sent_at - unit[-1].sent_at) > UNIT_GAP:
        return True
    if len(unit) >= most or sum(len(said.text) for said in unit) > UNIT_CHARACTERS:
        return True
    if len(unit) < MIN_UNIT_MESSAGES or not is_person(message.role):
        return False
    return _is_another_topic(message, unit[-TOPIC_MESSAGES:])


def _is_another_topic(message: Said, before: Sequence[Said]) -> bool:
    """Return True if the message says so, or is long and shares no word with those before it."""
    if _TURN.match(message.text):
        return True
    own = _words(message.text[:COMPARED])
    return len(own) >= TOPIC_WORDS and own.isdisjoint(set().union(*(_words(said.text[:COMPARED]) for said in before)))


@text_cache(32)  # each message is compared with some of those before it
def _words(text: str) -> frozenset[str]:
    """Return the words of a text without single Chinese characters, which everything shares."""
    return frozenset(term for term in tokens(text) if len(term) > 1)


def _checked(
    drafts: Iterable[Draft], said: Sequence[Said], settings: ExtractionSettings
) -> tuple[list[Draft], list[str]]:
    """Return the drafts that are valid, important and certain enough, and the problems of invalid ones."""
    by_id = {message.id: message for message in said}
    texts = {message.id: message.text for message in said}
    kept: dict[tuple[str | None, ...], Draft] = {}
    wrong: Counter[str] = Counter()
    for proposed in drafts:
        problem = _problem(proposed, texts)
        if problem is not None:
            wrong[problem] += 1
        elif proposed.importance >= settings.min_importance and (
            proposed.is_checked or proposed.confidence >= settings.min_confidence
        ):
            by = by_id[proposed.source.message_id]
            draft = in_whose_words(proposed, by.text)
            moment = draft.occurred_at.isoformat() if draft.attribute else None  # a fact can become true twice
            key = (draft.memory_type, exact_hash(draft.content), moment, by.role, by.speaker)
            first = kept.get(key)
            kept[key] = draft if first is None else replace(first, evidence=(*first.evidence, *draft.evidence))
    return list(kept.values()), [f"{number} finds were rejected: {problem}" for problem, number in wrong.items()]


def _problem(draft: Draft, texts: dict[str, str]) -> str | None:
    """Validate a draft like any foreign input: the extractor may be a language model."""
    try:
        validation.text("content", draft.content)
        validation.memory_type("memory_type", draft.memory_type)
        if draft.summary is not None:
            validation.text("summary", draft.summary)
        validation.share("importance", draft.importance)
        validation.share("confidence", draft.confidence)
        validation.tags("tags", draft.tags)
        validation.json_object("data", draft.data)
        for name in ("subject", "owner", "attribute", "value", "replaces"):
            validation.optional_name(name, getattr(draft, name))
    except InvalidInput as error:
        return str(error)
    if draft.valid_to is not None and draft.valid_to <= (draft.valid_from or draft.occurred_at):
        return "it would end before it began"
    if not draft.evidence:
        return "no message supports it"
    for source in draft.evidence:
        if source.message_id not in texts:
            return "the message that supports it does not exist"
        end = len(texts[source.message_id])
        if not 0 <= (source.start or 0) <= (end if source.end is None else source.end) <= end:
            return "the part of the message that supports it does not exist"
    return None

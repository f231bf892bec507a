"""Delete means gone, also from memories that were made of others: a profile or an episode loses the lines that came
from what is deleted; what has nothing left goes with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..embed import Embedder
from ..errors import EmbeddingError
from ..languages.normalise import normalise
from ..models import Deletion
from ..store.erasing import Erasure, Held, Rewrite, Rewritten
from ..text.summary import summarise
from ..write.grow import PROFILES
from ..write.hashes import identity
from ..write.index import KeywordRules, embed_each, index_entry

if TYPE_CHECKING:
    from ..store.base import Store

VERBATIM = "message"  # the source of a memory that holds a message as it was said
_WHOM = 16  # characters of a slot that say whom it is about
STOPS = ("。", ". ", ".")


async def erase(
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
    user_id: str,
    memory_ids: Sequence[str],
    *,
    with_sources: bool,
) -> Deletion:
    """One transaction; then vectors for what was rewritten, and the corners of the database."""
    done = await store.erase(user_id, memory_ids, with_sources=with_sources, rewrite=rewriter(rules))
    notes = []
    if done.rewritten:
        try:
            vectors = await embed_each(embedder, [one.texts for one in done.rewritten])
            await store.embed(embedder.id, done.rewritten, vectors)
        except EmbeddingError as error:
            notes.append(
                f"rewritten, but not found by meaning yet: {error} — `jiyi reindex --embeddings` makes up for it"
            )
    if done.kept_messages:
        notes.append(
            f"{done.kept_messages:,} raw messages stay, because other memories came from them: delete with the sources"
            " to remove those too"
        )
    return receipt(done, [*notes, *await store.scrub(everything=False)])


async def erase_all(store: Store, user_id: str) -> Deletion:
    done = await store.erase_all(user_id)
    return receipt(done, await store.scrub(everything=True))


def receipt(done: Erasure, notes: Sequence[str]) -> Deletion:
    removed = {kind: number for kind, number in sorted(done.removed.items()) if number}
    return Deletion(
        memories=removed.get("memories", 0),
        messages=removed.get("messages", 0),
        removed=removed,
        derived=tuple(done.derived),
        rewritten=tuple(one.memory_id for one in done.rewritten),
        restored=tuple(done.restored),
        notes=tuple(notes),
    )


def rewriter(rules: KeywordRules) -> Rewrite:
    return partial(left_of, rules=rules)


def left_of(
    held: Held, gone: Sequence[Held], messages: frozenset[str], *, rules: KeywordRules
) -> Held | Rewritten | None:
    """What is left of a profile or an episode."""
    facts = [one for one in gone if one.source != VERBATIM]
    if held.memory_type in PROFILES:
        left = _of_profile(held, facts, messages)
    elif held.messages & messages:
        return None  # which words came from which message cannot be told
    else:
        left = _of_episode(held, facts)
    if left is None or left == (held.content, held.summary, held.data):
        return None if left is None else held
    content, summary, data = left
    return Rewritten(
        content=content,
        summary=summary,
        data=data,
        dedupe_hash=identity("what is left of", held.id),
        index=index_entry(content, summary, held.tags, data, rules),
    )


Left = tuple[str, str, dict[str, Any]]  # content, summary, data


def _of_profile(held: Held, facts: Sequence[Held], messages: frozenset[str]) -> Left | None:
    """Attributes whose evidence is gone are, and so are those that say what a deleted fact says of the same person."""
    found = held.data.get("attributes")
    attributes = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    gone = messages | {one.id for one in facts}
    kept = [item for item in attributes if not _is_gone(item, held, facts, gone)]
    texts = {str(item.get("content")) for item in attributes if item not in kept} | {one.content for one in facts}
    texts -= {str(item.get("content")) for item in kept}
    lines = [line for line in held.content.split("\n") if line not in texts]
    content = "\n".join(lines)
    if not content.strip():
        return None
    data = {**held.data, "attributes": [_without(item, gone) for item in kept]} if attributes else held.data
    return content, held.summary if content == held.content else summarise(content), data


def _is_gone(item: dict[str, Any], held: Held, facts: Sequence[Held], gone: frozenset[str]) -> bool:
    evidence = _evidence(item)
    if evidence and evidence <= gone:
        return True
    return any(_same_person(held, fact) and _says(fact, item) for fact in facts)


def _evidence(item: dict[str, Any]) -> set[str]:
    places = item.get("evidence")
    return (
        {str(one.get("message_id")) for one in places if isinstance(one, dict)} if isinstance(places, list) else set()
    )


def _same_person(held: Held, fact: Held) -> bool:
    return held.slot is None or fact.slot is None or held.slot[:_WHOM] == fact.slot[:_WHOM]


def _says(fact: Held, item: dict[str, Any]) -> bool:
    if fact.content == item.get("content"):
        return True
    value, told = fact.data.get("value"), item.get("value")
    same = isinstance(value, str) and isinstance(told, str) and normalise(value) == normalise(told)
    return same and fact.data.get("attribute") == item.get("attribute")


def _without(item: dict[str, Any], gone: frozenset[str]) -> dict[str, Any]:
    """An attribute that has other evidence does not name what is gone."""
    places = item.get("evidence")
    if not isinstance(places, list) or _evidence(item).isdisjoint(gone):
        return item
    return {**item, "evidence": [one for one in places if one.get("message_id") not in gone]}


def _of_episode(held: Held, facts: Sequence[Held]) -> Left | None:
    """Told by rule, an episode is the sentences of facts. In any other telling they cannot be cut out."""
    told = [fact.content for fact in facts if fact.content in held.content]
    if not told:
        return held.content, held.summary, held.data
    if held.data.get("extractor") != "builtin":
        return None
    content = held.content
    for text in sorted(told, key=len, reverse=True):
        content = _cut(content, text)
    content = content.strip()
    if not content.strip("。. ") or any(text in content for text in told):
        return None
    title = summarise(content)
    data = held.data | dict.fromkeys({"title", "value"} & held.data.keys(), title)
    return content, title, data


def _cut(content: str, text: str) -> str:
    for stop in STOPS:
        if text + stop in content:
            return content.replace(text + stop, "")
    return content

"""Delete memories everywhere: profiles and episodes lose the lines that came from them, and are deleted when empty."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..embed import Embedder
from ..errors import EmbeddingError
from ..ids import identity
from ..languages.words import normalise
from ..models import Deletion
from ..store.deletions import Erasure, Held, Rewrite, Rewritten
from ..text.summary import summarise
from ..write.index import KeywordRules, embed_each, index_entry

if TYPE_CHECKING:
    from ..index.search_index import SearchIndex
    from ..store.store import Store

PROFILES = frozenset({"profile", "group_profile"})
MESSAGE = "message"  # source of memories that repeat a message verbatim
_SUBJECT = 16  # characters of a slot that identify the subject
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
    """Delete in one transaction, then embed rewritten memories and scrub free space of the database."""
    done = await store.deletions.delete(user_id, memory_ids, with_sources=with_sources, rewrite=rewriter(rules))
    notes = []
    if done.rewritten:
        try:
            vectors = await embed_each(embedder, [one.texts for one in done.rewritten])
            await store.entries.save_vectors(embedder.id, done.rewritten, vectors)
        except EmbeddingError as error:
            notes.append(f"rewritten memories have no vectors yet: {error}; run `jiyi reindex --embeddings`")
    if done.kept_messages:
        notes.append(
            f"{done.kept_messages:,} messages stay because other memories came from them: delete with sources to remove"
            " them too"
        )
    return receipt(done, [*notes, *await store.database.scrub(everything=False)])


async def erase_all(store: Store, index: SearchIndex, user_id: str) -> Deletion:
    done = await store.deletions.delete_user(user_id)
    await index.forget(user_id)
    return receipt(done, await store.database.scrub(everything=True))


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
    return partial(remainder, rules=rules)


def remainder(
    held: Held, deleted: Sequence[Held], messages: frozenset[str], *, rules: KeywordRules
) -> Held | Rewritten | None:
    """Return a profile or episode without the deleted facts: unchanged, rewritten, or None if it goes too."""
    facts = [one for one in deleted if one.source != MESSAGE]
    if held.memory_type in PROFILES:
        left = _profile_remainder(held, facts, messages)
    elif held.messages & messages:
        return None  # its words cannot be traced to single messages
    else:
        left = _episode_remainder(held, facts)
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


Remainder = tuple[str, str, dict[str, Any]]  # content, summary, data


def _profile_remainder(held: Held, facts: Sequence[Held], messages: frozenset[str]) -> Remainder | None:
    """Drop attributes whose evidence is deleted, and those that repeat a deleted fact about the same person."""
    found = held.data.get("attributes")
    attributes = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    deleted = messages | {one.id for one in facts}
    kept = [item for item in attributes if not _is_deleted(item, held, facts, deleted)]
    texts = {str(item.get("content")) for item in attributes if item not in kept} | {one.content for one in facts}
    texts -= {str(item.get("content")) for item in kept}
    lines = [line for line in held.content.split("\n") if line not in texts]
    content = "\n".join(lines)
    if not content.strip():
        return None
    data = {**held.data, "attributes": [_without(item, deleted) for item in kept]} if attributes else held.data
    return content, held.summary if content == held.content else summarise(content), data


def _is_deleted(item: dict[str, Any], held: Held, facts: Sequence[Held], deleted: frozenset[str]) -> bool:
    evidence = _evidence(item)
    if evidence and evidence <= deleted:
        return True
    return any(_same_subject(held, fact) and _states(fact, item) for fact in facts)


def _evidence(item: dict[str, Any]) -> set[str]:
    places = item.get("evidence")
    return (
        {str(one.get("message_id")) for one in places if isinstance(one, dict)} if isinstance(places, list) else set()
    )


def _same_subject(held: Held, fact: Held) -> bool:
    return held.slot is None or fact.slot is None or held.slot[:_SUBJECT] == fact.slot[:_SUBJECT]


def _states(fact: Held, item: dict[str, Any]) -> bool:
    if fact.content == item.get("content"):
        return True
    value, stated = fact.data.get("value"), item.get("value")
    same = isinstance(value, str) and isinstance(stated, str) and normalise(value) == normalise(stated)
    return same and fact.data.get("attribute") == item.get("attribute")


def _without(item: dict[str, Any], deleted: frozenset[str]) -> dict[str, Any]:
    """Remove deleted messages from the evidence of an attribute."""
    places = item.get("evidence")
    if not isinstance(places, list) or _evidence(item).isdisjoint(deleted):
        return item
    return {**item, "evidence": [one for one in places if one.get("message_id") not in deleted]}


def _episode_remainder(held: Held, facts: Sequence[Held]) -> Remainder | None:
    """Cut deleted facts out of a built-in episode, which consists of them; others cannot be cut."""
    found = [fact.content for fact in facts if fact.content in held.content]
    if not found:
        return held.content, held.summary, held.data
    if held.data.get("extractor") != "builtin":
        return None
    content = held.content
    for text in sorted(found, key=len, reverse=True):
        content = _cut(content, text)
    content = content.strip()
    if not content.strip("。. ") or any(text in content for text in found):
        return None
    title = summarise(content)
    data = held.data | dict.fromkeys({"title", "value"} & held.data.keys(), title)
    return content, title, data


def _cut(content: str, text: str) -> str:
    for stop in STOPS:
        if text + stop in content:
            return content.replace(text + stop, "")
    return content

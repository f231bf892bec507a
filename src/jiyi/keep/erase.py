"""Delete memories everywhere: profiles lose the lines that repeat them, and episodes that contain them go too."""

from collections.abc import Mapping, Sequence
from functools import partial

from ..embed import Embedder
from ..errors import EmbeddingError
from ..ids import identity
from ..index.search_index import SearchIndex
from ..models import Deletion
from ..store.repositories.deletions import Erasure, Rewrite, Rewritten
from ..store.repositories.messages import MESSAGE
from ..store.store import Store
from ..store.upkeep.held_rows import Held
from ..store.upkeep.message_words import MessageParts
from ..text.passages import summarise
from ..write.index import KeywordRules, embed_each, index_entry
from ..write.parse.divide import echoes, statements_left

PROFILES = frozenset({"profile", "group_profile"})


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
    done = await store.deletions.delete(
        user_id, memory_ids, with_sources=with_sources, rewrite=rewriter(rules), parts=message_parts(rules)
    )
    return receipt(done, [*await _finish(store, embedder, done), *await store.database.scrub(everything=False)])


async def erase_each(
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
    wanted: Mapping[str, Sequence[str]],
    *,
    with_sources: bool,
    all_or_none: bool,
) -> dict[str, Deletion]:
    """Do the same with memories of several users, in one transaction."""
    done = await store.deletions.delete_each(
        wanted,
        with_sources=with_sources,
        rewrite=rewriter(rules),
        parts=message_parts(rules),
        all_or_none=all_or_none,
    )
    notes = {user_id: await _finish(store, embedder, erasure) for user_id, erasure in done.items()}
    left = await store.database.scrub(everything=False)
    return {user_id: receipt(erasure, [*notes[user_id], *left]) for user_id, erasure in done.items()}


async def _finish(store: Store, embedder: Embedder, done: Erasure) -> list[str]:
    """Embed rewritten memories; return notes for the receipt."""
    notes = []
    if changed := [*done.rewritten, *done.divided]:
        try:
            vectors = await embed_each(embedder, [one.texts for one in changed])
            await store.entries.save_vectors(embedder.id, changed, vectors)
        except EmbeddingError as error:
            notes.append(f"rewritten memories have no vectors yet: {error}; run `jiyi reindex --embeddings`")
    if done.redacted:
        they = "1 message stays" if done.redacted == 1 else f"{done.redacted:,} messages stay"
        notes.append(f"{they} without these words, because they state more")
    if done.kept_messages:
        stay = (
            "1 message stays, and searches find it, because it may state more than that"
            if done.kept_messages == 1
            else f"{done.kept_messages:,} messages stay, and searches find them, because they state more than that"
        )
        notes.append(f"{stay}: delete with sources to remove {'it' if done.kept_messages == 1 else 'them'} too")
    return notes


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


def message_parts(rules: KeywordRules) -> MessageParts:
    return MessageParts(left=partial(statements_left, rules=rules), echoes=echoes)


def rewriter(rules: KeywordRules) -> Rewrite:
    return partial(remainder, rules=rules)


def remainder(
    held: Held, deleted: Sequence[Held], messages: frozenset[str], *, rules: KeywordRules
) -> Held | Rewritten | None:
    """Return a profile or episode without the deleted texts: unchanged, rewritten, or None if it goes too."""
    if held.messages & messages:
        return None  # its words cannot be traced to single messages
    texts = {one.content for one in deleted if one.source != MESSAGE}
    if held.memory_type not in PROFILES:
        return None if any(text in held.content for text in texts) else held
    content = "\n".join(line for line in held.content.split("\n") if line not in texts)
    if content == held.content or not content.strip():
        return held if content == held.content else None
    summary = summarise(content)
    return Rewritten(
        content=content,
        summary=summary,
        data=held.data,
        dedupe_hash=identity("what is left of", held.id),
        index=index_entry(content, summary, held.tags, held.data, held.memory_type, rules),
    )

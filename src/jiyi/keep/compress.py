"""Compressing: many old memories that are seldom used become few that keep their names, numbers and dates.

    plan    a value: which memories become which text. It changes nothing and can be looked at
    apply   bundle by bundle, each in one transaction that is void if a member has changed meanwhile

The originals are archived, not deleted. What takes their place says from which messages it comes and `refines` them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ..embed import Embedder
from ..errors import LlmBadReply, LlmError
from ..ids import new_id
from ..models import ReceiptState, layer_of
from ..store.aged import Aged, Held
from ..store.contract import (
    Addition,
    Change,
    ChangedMemory,
    Effects,
    NewMemory,
    NewRelation,
    Source,
    Stale,
)
from ..text.passages import COMPRESSED, passages, width
from ..text.summary import summarise
from ..write.hashes import identity
from ..write.index import KeywordRules, embed_entries, index_entries
from .extract import Told, extract
from .grouping import Group, groups
from .plans import Bundle, Compressed, CompressPlan, Member
from .policies import LONGER, Policies

if TYPE_CHECKING:
    from ..llm.client import Llm
    from ..settings import MaintenanceSettings
    from ..store.base import Store

PAGE = 1000
MOST_AT_ONCE = 4000  # memories of one user that are looked at; the rest waits for the next time
MOST_TEXTS = 3
NOTES = 0.75  # confidence; facts that are surer fill a slot that later ones must find
MOST_TAGS = 64
BELOW_IMPORTANCE = 0.9  # more important memories are not compressed
SMALLEST_GROUP = 3
LONGEST = 450  # letters of a compressed memory; a Chinese character counts as three
MOST_LONGER = 2  # how often a text may become longer
KIND = "compress"
EXTRACT = "extract"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressor:
    store: Store
    embedder: Embedder
    rules: KeywordRules
    settings: MaintenanceSettings
    llm: Llm | None = None

    async def plan(self, user_id: str, now: datetime, *, most: int | None = None) -> CompressPlan:
        """What could be compressed now, or a part of it."""
        found = await asyncio.to_thread(self._groups, await self._old(user_id, now), now)
        return CompressPlan(
            user_id=user_id, made_at=now, bundles=tuple([await self._bundle(group, user_id) for group in found[:most]])
        )

    async def _old(self, user_id: str, now: datetime) -> list[Held]:
        """The oldest of those that may be compressed."""
        policies = Policies(settings=self.settings)
        wanted = Aged(
            user_id=user_id,
            model=self.embedder.id,
            now=now,
            before=now - timedelta(days=policies.fewest_days),
            uses=self.settings.compress_below_uses,
            unused_since=now - timedelta(days=self.settings.compress_again_after_days),
            importance=BELOW_IMPORTANCE,
            confidence=NOTES,
            but_types=policies.kept,
        )
        old: list[Held] = []
        after = ""
        while len(old) < MOST_AT_ONCE:
            some = await self.store.aged(wanted, after=after, limit=PAGE)
            old += [memory for memory in some if policies.is_old(memory, now)]
            if len(some) < PAGE:
                break
            after = some[-1].id
        return old

    def _groups(self, old: Sequence[Held], now: datetime) -> list[Group]:
        """Those that become fewer."""
        found = groups(
            old,
            smallest=SMALLEST_GROUP,
            longest=self._longest,
            very_old=now - timedelta(days=self.settings.compress_again_after_days),
            size=lambda member: width(extract(told([member]))),
        )
        return [group for group in found if len(self._texts(group.members)) < len(group.members)]

    def _longest(self, level: int) -> int:
        """What is compressed again may be longer: else nothing that is full would ever find company."""
        return LONGEST * int(LONGER ** min(level, MOST_LONGER))

    def _texts(self, members: Sequence[Held]) -> tuple[str, ...]:
        """In the words of the originals. One text, or up to three where that would be too long to be found by."""
        return self._packed(extract(told(members)).splitlines(), members)

    def _packed(self, lines: Sequence[str], members: Sequence[Held]) -> tuple[str, ...]:
        if not lines:
            return ()
        parts = [""]
        longest = self._longest(max(member.level for member in members))
        for line in lines:
            if parts[-1] and width(parts[-1]) + width(line) > longest and len(parts) < MOST_TEXTS:
                parts.append("")
            parts[-1] += ("\n" if parts[-1] else "") + line
        return tuple(parts)

    async def _bundle(self, group: Group, user_id: str) -> Bundle:
        first = group.members[0]
        texts, made_by, note = self._texts(group.members), EXTRACT, None
        if self.llm is not None and texts:
            try:
                texts, made_by = await self._shortened(group.members, self.llm, user_id)
            except LlmError as error:
                note = str(error)
        return Bundle(
            memory_type=first.memory_type,
            subject=group.subject,
            agent_id=first.agent_id,
            group_id=first.group_id,
            session_id=first.session_id if len({one.session_id for one in group.members}) == 1 else None,
            level=1 + max(member.level for member in group.members),
            members=tuple(Member(id=one.id, version=one.version, text=one.content) for one in group.members),
            texts=texts,
            made_by=made_by,
            note=note,
        )

    async def _shortened(self, members: Sequence[Held], llm: Llm, user_id: str) -> tuple[tuple[str, ...], str]:
        """In the words of a language model. A small one tells each memory apart: its texts become lines of one."""
        from .shorten import shorten

        told_anew, made_by = await shorten(told(members), llm, user_id=user_id)
        texts = self._packed(told_anew, members)
        if len(texts) >= len(members):
            raise LlmBadReply("the compressed memories are no fewer than before")
        return texts, made_by

    async def apply(self, plan: CompressPlan, *, now: datetime, actor: str) -> Compressed:
        """Do what the plan says, as far as its members are still as they were.

        One that was changed meanwhile drops out; the others are told anew without it, if they are still enough."""
        done: list[Bundle] = []
        made: list[str] = []
        left: list[str] = []
        for number, planned in enumerate(plan.bundles):
            bundle: Bundle | None = planned
            at = now + timedelta(microseconds=number)  # by which undo knows what was done together
            while bundle is not None:
                there = await self.store.held(plan.user_id, [one.id for one in bundle.members], self.embedder.id)
                versions = {one.id: one.version for one in there}
                gone = [one.id for one in bundle.members if versions.get(one.id) != one.version]
                if not gone:
                    try:
                        made += await self._write(bundle, there, plan.user_id, at, actor)
                        done.append(bundle)
                        break
                    except Stale:
                        continue
                left += gone
                bundle = self._without(bundle, there, set(gone))
        return Compressed(
            archived=sum(len(bundle.members) for bundle in done),
            made=len(made),
            memory_ids=tuple(made),
            bundles=tuple(done),
            left=tuple(left),
        )

    def _without(self, bundle: Bundle, there: Sequence[Held], gone: set[str]) -> Bundle | None:
        rest = [one for one in there if one.id not in gone]
        texts = self._texts(rest)
        if len(rest) < SMALLEST_GROUP or len(texts) >= len(rest):
            return None
        members = tuple(member for member in bundle.members if member.id not in gone)
        return bundle.model_copy(update={"members": members, "texts": texts, "made_by": EXTRACT, "note": None})

    async def _write(
        self, bundle: Bundle, members: Sequence[Held], user_id: str, now: datetime, actor: str
    ) -> list[str]:
        new = [_new(bundle, text, at, members) for at, text in enumerate(bundle.texts)]
        entries, _ = await asyncio.to_thread(
            index_entries, [(one.content, one.summary, one.tags, one.data) for one in new], self.rules
        )
        entries, problem = await embed_entries(entries, [one.content for one in new], self.embedder)
        told_by = ", ".join(one.id for one in new)
        reason = f"compressed into {told_by}" if new else "compressed: it told nothing that is worth keeping"
        archive = Change(values={"status": "archived"}, action="archive", actor=actor, reason=reason, at=now)
        addition = Addition(
            id=new_id(),
            user_id=user_id,
            session_id=bundle.session_id,
            agent_id=bundle.agent_id,
            group_id=bundle.group_id,
            idempotency_key=None,
            request_hash="",
            actor=actor,
            at=now,
            state=ReceiptState.EXTRACTED if problem else ReceiptState.INDEXED,
            problems=tuple(note for note in (problem, bundle.note) if note),
            model=self.embedder.id,
            messages=(),
            memories=tuple(replace(one, index=entry) for one, entry in zip(new, entries, strict=True)),
            effects=Effects(
                changes=tuple(ChangedMemory(id=one.id, change=archive, version=one.version) for one in bundle.members),
                relations=tuple(
                    NewRelation(memory_id=one.id, target_id=member.id, relation_type="refines", strength=1.0)
                    for one in new
                    for member in bundle.members
                ),
            ),
            kind=KIND,
        )
        await self.store.save(addition)
        return [one.id for one in new]


def told(members: Sequence[Held]) -> list[Told]:
    return [
        Told(id=one.id, text=one.content, at=one.occurred_at, by_assistant=one.data.get("role") == "assistant")
        for one in members
    ]


def _new(bundle: Bundle, text: str, at: int, members: Sequence[Held]) -> NewMemory:
    """What takes the members' place: as important as the weightiest, as sure and as
    trusted as the least of them."""
    memory_id = new_id()
    # What was worked out of messages (`extractor`) steps back behind them, also when both are compressed.
    shown = ("role", "speaker", "subject", "extractor")
    same = {name: value for name, value in members[0].data.items() if name in shown}
    data = {name: value for name, value in same.items() if all(one.data.get(name) == value for one in members)}
    shared = members[0].metadata.items()
    ids = sorted(one.id for one in members)
    lines = max(len(passages(text, {COMPRESSED: bundle.level})), 1)
    return NewMemory(
        id=memory_id,
        memory_key=memory_id,
        memory_type=bundle.memory_type,
        layer=layer_of(bundle.memory_type),
        content=text,
        summary=summarise(text),
        data={**data, COMPRESSED: bundle.level, "of": len(members), "lines": lines, "made_by": bundle.made_by},
        metadata={name: value for name, value in shared if all(one.metadata.get(name) == value for one in members)},
        importance=max(one.importance for one in members),
        confidence=min(one.confidence for one in members),
        trust=min(one.trust for one in members),
        tags=tuple(dict.fromkeys(tag for one in members for tag in one.tags))[:MOST_TAGS],
        dedupe_hash=identity(KIND, str(at), *ids),
        occurred_at=max(one.occurred_at for one in members),
        valid_from=min(one.valid_from for one in members),
        expires_at=None,
        source="compressed",
        sources=_sources(members),
        reason=f"compressed from {len(members)} memories",
    )


def _sources(members: Sequence[Held]) -> tuple[Source, ...]:
    found = {source.message_id: Source(message_id=source.message_id) for one in members for source in one.sources}
    return tuple(found.values())

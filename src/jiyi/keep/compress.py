"""Compress many old, rarely used memories into a few that keep their names, numbers and dates.

    plan    a value that says which memories become which text; nothing is changed
    apply   each bundle in one transaction, which is rolled back if a member has changed meanwhile

The originals are archived, not deleted. A compressed memory names the source messages and `refines` the originals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pydantic import Field

from ..embed import Embedder
from ..errors import LlmBadReply, LlmError
from ..ids import identity, new_id
from ..languages.words import width
from ..llm.client import LLMClient
from ..memory_types import layer_of
from ..models import ReceiptState, Time, Value
from ..models.shown_dates import with_dates
from ..roles import BY_USER
from ..settings import MaintenanceSettings
from ..store.store import Store
from ..store.upkeep.aged_rows import Aged, Held
from ..store.write_set import Addition, Change, ChangedMemory, Effects, NewMemory, NewRelation, Source, Stale
from ..text.passages import COMPRESSED, passages, summarise
from ..write.index import KeywordRules, embed_entries, index_entries
from .condense import DatedText, condense
from .groups import Group, groups
from .retention import LEVEL_FACTOR, Retention

PAGE = 1000
MAX_MEMORIES = 4000  # of one user in one plan
MAX_TEXTS = 3  # of one bundle
MAX_CONFIDENCE = 0.75  # facts above it fill a slot and must stay findable by later ones
MAX_TAGS = 64
MAX_IMPORTANCE = 0.9  # more important memories are not compressed
MIN_GROUP = 3
MAX_LENGTH = 450  # letters of a compressed memory; a Chinese character counts as three
MAX_GROWTH = 2  # compression levels at which texts may become longer
KIND = "compress"
EXTRACT = "extract"


class Member(Value):
    """A memory to be compressed, as it was when the plan was made."""

    id: str
    version: int
    text: str


class Bundle(Value):
    """Old memories of one type and subject, and the one to three texts that replace them; none if uninformative."""

    memory_type: str
    subject: str | None
    agent_id: str | None = None
    group_id: str | None = None
    session_id: str | None = None
    level: int = Field(description="1: compressed for the first time")
    members: tuple[Member, ...]
    texts: tuple[str, ...]
    made_by: str = Field(description="`extract`, or the language model and prompt")
    note: str | None = Field(default=None, description="why a language model's text was refused")


class CompressPlan(Value):
    """The changes that `compress` would make."""

    user_id: str
    made_at: Time
    bundles: tuple[Bundle, ...]

    @property
    def before(self) -> int:
        return sum(len(bundle.members) for bundle in self.bundles)

    @property
    def after(self) -> int:
        return sum(len(bundle.texts) for bundle in self.bundles)


class CompressReport(Value):
    """Result of `compress`."""

    archived: int
    made: int
    memory_ids: tuple[str, ...] = Field(default=(), description="the new memories")
    bundles: tuple[Bundle, ...] = Field(default=(), description="bundles as applied")
    left: tuple[str, ...] = Field(default=(), description="memories left out because they changed meanwhile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressor:
    store: Store
    embedder: Embedder
    rules: KeywordRules
    settings: MaintenanceSettings
    llm: LLMClient | None = None

    async def plan(self, user_id: str, now: datetime, *, limit: int | None = None) -> CompressPlan:
        """Plan all bundles, or the first few."""
        epoch = await self.store.erasures.epoch(user_id)
        found = await asyncio.to_thread(self._groups, await self._old(user_id, now), now)
        bundles = [await self._bundle(group, user_id, epoch) for group in found[:limit]]
        return CompressPlan(user_id=user_id, made_at=now, bundles=tuple(bundles))

    async def _old(self, user_id: str, now: datetime) -> list[Held]:
        """Read the oldest memories that may be compressed."""
        retention = Retention(settings=self.settings)
        wanted = Aged(
            user_id=user_id,
            model=self.embedder.id,
            now=now,
            before=now - timedelta(days=retention.min_days),
            uses=self.settings.compress_below_uses,
            unused_since=now - timedelta(days=self.settings.compress_again_after_days),
            importance=MAX_IMPORTANCE,
            confidence=MAX_CONFIDENCE,
            but_types=retention.exempt_types,
        )
        old: list[Held] = []
        after = ""
        while len(old) < MAX_MEMORIES:
            page = await self.store.maintenance.aged(wanted, after=after, limit=PAGE)
            old += [memory for memory in page if retention.is_old(memory, now)]
            if len(page) < PAGE:
                break
            after = page[-1].id
        return old

    def _groups(self, old: Sequence[Held], now: datetime) -> list[Group]:
        """Groups that need fewer texts than they have members."""
        found = groups(
            old,
            smallest=MIN_GROUP,
            max_length=self._max_length,
            very_old=now - timedelta(days=self.settings.compress_again_after_days),
            size=lambda member: width(condense(dated_texts([member]))),
        )
        return [group for group in found if len(self._texts(group.members)) < len(group.members)]

    def _max_length(self, level: int) -> int:
        """Texts compressed again may be longer: otherwise a full text could never be merged."""
        return MAX_LENGTH * int(LEVEL_FACTOR ** min(level, MAX_GROWTH))

    def _texts(self, members: Sequence[Held]) -> tuple[str, ...]:
        """Condense verbatim into one text, or up to three where it would be too long for search."""
        return self._packed(condense(dated_texts(members)).splitlines(), members)

    def _packed(self, lines: Sequence[str], members: Sequence[Held]) -> tuple[str, ...]:
        if not lines:
            return ()
        parts = [""]
        max_length = self._max_length(max(member.level for member in members))
        for line in lines:
            if parts[-1] and width(parts[-1]) + width(line) > max_length and len(parts) < MAX_TEXTS:
                parts.append("")
            parts[-1] += ("\n" if parts[-1] else "") + line
        return tuple(parts)

    async def _bundle(self, group: Group, user_id: str, epoch: str) -> Bundle:
        first = group.members[0]
        texts, made_by, note = self._texts(group.members), EXTRACT, None
        if self.llm is not None and texts:
            try:
                texts, made_by = await self._condensed_by_llm(group.members, self.llm, user_id, epoch)
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

    async def _condensed_by_llm(
        self, members: Sequence[Held], llm: LLMClient, user_id: str, epoch: str
    ) -> tuple[tuple[str, ...], str]:
        """Condense with a language model. Small models return one text per memory: those become lines of one text."""
        from .condense_llm import condense_with_llm

        lines, made_by = await condense_with_llm(dated_texts(members), llm, user_id=user_id, epoch=epoch)
        texts = self._packed(lines, members)
        if len(texts) >= len(members):
            raise LlmBadReply("the compressed memories are not fewer than before")
        return texts, made_by

    async def apply(self, plan: CompressPlan, *, now: datetime, actor: str) -> CompressReport:
        """Apply the plan. A member changed meanwhile is left out; the rest is condensed again if it is large enough."""
        epoch = await self.store.erasures.epoch(plan.user_id)
        done: list[Bundle] = []
        made: list[str] = []
        left: list[str] = []
        for number, planned in enumerate(plan.bundles):
            bundle: Bundle | None = planned
            at = now + timedelta(microseconds=number)  # identifies the bundle for undo
            while bundle is not None:
                current = await self.store.maintenance.get(
                    plan.user_id, [one.id for one in bundle.members], self.embedder.id
                )
                versions = {one.id: one.version for one in current}
                changed = [one.id for one in bundle.members if versions.get(one.id) != one.version]
                if not changed:
                    try:
                        made += await self._write(bundle, current, plan.user_id, epoch, at, actor)
                        done.append(bundle)
                        break
                    except Stale:
                        continue
                left += changed
                bundle = self._without(bundle, current, set(changed))
        return CompressReport(
            archived=sum(len(bundle.members) for bundle in done),
            made=len(made),
            memory_ids=tuple(made),
            bundles=tuple(done),
            left=tuple(left),
        )

    def _without(self, bundle: Bundle, current: Sequence[Held], changed: set[str]) -> Bundle | None:
        rest = [one for one in current if one.id not in changed]
        texts = self._texts(rest)
        if len(rest) < MIN_GROUP or len(texts) >= len(rest):
            return None
        members = tuple(member for member in bundle.members if member.id not in changed)
        return bundle.model_copy(update={"members": members, "texts": texts, "made_by": EXTRACT, "note": None})

    async def _write(
        self, bundle: Bundle, members: Sequence[Held], user_id: str, epoch: str, now: datetime, actor: str
    ) -> list[str]:
        new = [_new(bundle, text, at, members) for at, text in enumerate(bundle.texts)]
        entries, _ = await asyncio.to_thread(
            index_entries,
            [(one.content, one.summary, one.tags, one.data, one.memory_type) for one in new],
            self.rules,
        )
        entries, problem = await embed_entries(entries, [one.content for one in new], self.embedder)
        new_ids = ", ".join(one.id for one in new)
        reason = f"compressed into {new_ids}" if new else "compressed: not informative"
        archive = Change(values={"status": "archived"}, action="archive", actor=actor, reason=reason, at=now)
        addition = Addition(
            id=new_id(),
            user_id=user_id,
            epoch=epoch,
            session_id=bundle.session_id,
            agent_id=bundle.agent_id,
            group_id=bundle.group_id,
            actor=actor,
            at=now,
            state=ReceiptState.EXTRACTED if problem else ReceiptState.INDEXED,
            problems=tuple(note for note in (problem, bundle.note) if note),
            model=self.embedder.id,
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
        await self.store.additions.save(addition)
        return [one.id for one in new]


def dated_texts(members: Sequence[Held]) -> list[DatedText]:
    return [
        DatedText(
            id=one.id,
            text=with_dates(one.content, one.data),
            at=one.occurred_at,
            by_assistant=one.data.get("role") == "assistant",
        )
        for one in members
    ]


def _new(bundle: Bundle, text: str, at: int, members: Sequence[Held]) -> NewMemory:
    """Build the replacement: as important as the most important member, as certain and trusted as the least."""
    memory_id = new_id()
    # `extractor` marks derived memories, which rank below messages also when both are compressed.
    copied = ("role", "speaker", BY_USER, "subject", "owner", "extractor")
    same = {name: value for name, value in members[0].data.items() if name in copied}
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
        tags=tuple(dict.fromkeys(tag for one in members for tag in one.tags))[:MAX_TAGS],
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

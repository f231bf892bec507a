"""Synonyms, stored in both directions so that a look-up uses the primary key; keywords that occur together; and
relations between memories."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select
from sqlalchemy.orm import Session

from ...errors import InvalidInput, NotFound
from ...languages.words import normalise
from ...models import Relation, RelationType, utc_now
from ...scope import Filter
from ...synonyms import Cooccurrence, Pair, Synonym, in_order
from ..database import Repository, chunks, count_changed, from_row, reads, writes
from ..schema.tables import SHARED, ChangeRow, KeywordRow, MemoryRow, RelationRow, SynonymRow
from ..write_set import COMPRESSED
from .memories import conditions, memory_row

NEWEST = 200  # of the memories that have a word; a word's company is counted in these
COMPANIONS = 30  # words; of those that are often together with it

_DELETE = delete(SynonymRow.__table__).where(
    SynonymRow.user_id == bindparam("whose"),
    SynonymRow.keyword == bindparam("one"),
    SynonymRow.synonym == bindparam("other"),
)


def add(session: Session, user_id: str, given: Mapping[Pair, float]) -> int:
    """Add pairs or update their similarity; return the number of new or changed ones."""
    known: dict[Pair, float] = {}
    for some in chunks(list({keyword for keyword, _ in given})):
        statement = select(SynonymRow.keyword, SynonymRow.synonym, SynonymRow.similarity).where(
            SynonymRow.user_id == user_id, SynonymRow.keyword.in_(some)
        )
        known.update({(one, other): similarity for one, other, similarity in session.execute(statement).all()})
    changed = {pair: similarity for pair, similarity in given.items() if known.get(pair) != similarity}
    if not changed:
        return 0
    both = [(*pair, similarity) for pair, similarity in changed.items()]
    both += [(other, one, similarity) for one, other, similarity in both]
    old = [{"whose": user_id, "one": one, "other": other} for one, other, _ in both if in_order(one, other) in known]
    if old:
        session.execute(_DELETE, old)
    values = [{"user_id": user_id, "keyword": one, "synonym": other, "similarity": alike} for one, other, alike in both]
    session.execute(insert(SynonymRow), values)
    tell(session, user_id)
    return len(changed)


def synonyms_of(session: Session, user_id: str, words: Sequence[str]) -> dict[str, list[tuple[str, float]]]:
    """Return synonyms of the words, best first: the user's own and the shared ones. The user's own similarity overrides
    the shared one."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for some in chunks(list(dict.fromkeys(map(normalise, words)))):
        statement = select(SynonymRow.user_id, SynonymRow.keyword, SynonymRow.synonym, SynonymRow.similarity).where(
            SynonymRow.user_id.in_([user_id, SHARED]), SynonymRow.keyword.in_(some)
        )
        lines = session.execute(statement).all()
        for _, keyword, synonym, similarity in sorted(lines, key=lambda line: line[0] != SHARED):
            found[keyword][synonym] = similarity
    return {
        keyword: sorted(synonyms.items(), key=lambda entry: (-entry[1], entry[0]))
        for keyword, synonyms in found.items()
    }


def listing(session: Session, user_id: str) -> Sequence[Synonym]:
    """Return the user's pairs and the shared ones, each once, by word."""
    statement = (
        select(SynonymRow.__table__)
        .where(SynonymRow.user_id.in_([user_id, SHARED]), SynonymRow.keyword < SynonymRow.synonym)
        .order_by(SynonymRow.keyword, SynonymRow.synonym, SynonymRow.user_id)
    )
    return [
        Synonym(keyword=row.keyword, synonym=row.synonym, similarity=row.similarity, shared=row.user_id == SHARED)
        for row in session.execute(statement).all()
    ]


def remove(session: Session, user_id: str, keyword: str, synonym: str | None) -> int:
    """Remove one pair, or all pairs of a word; return their number."""
    word, other = normalise(keyword), None if synonym is None else normalise(synonym)
    forth, back = SynonymRow.keyword == word, SynonymRow.synonym == word
    if other is not None:
        forth, back = and_(forth, SynonymRow.synonym == other), and_(back, SynonymRow.keyword == other)
    mine = SynonymRow.user_id == user_id
    found = session.scalar(select(func.count()).select_from(SynonymRow).where(mine, forth)) or 0
    if not found:
        pair = f"{keyword!r}" if synonym is None else f"{keyword!r} and {synonym!r}"
        whose = "no shared synonyms" if user_id == SHARED else f"user {user_id!r} has no synonyms of their own"
        raise NotFound(f"{whose}: {pair}")
    session.execute(delete(SynonymRow).where(mine, or_(forth, back)))
    tell(session, user_id)
    return found


def tell(session: Session, user_id: str) -> None:
    """Record in the change feed that search results may differ."""
    change = {"user_id": user_id, "memory_id": "", "action": "synonyms", "changed_at": utc_now()}
    session.execute(insert(ChangeRow), [change])


class Synonyms(Repository):
    """Synonyms of one user; without a user, those that all users share."""

    async def add(self, user_id: str | None, pairs: Mapping[Pair, float]) -> int:
        whose = user_id or SHARED
        return await self._database.write([whose], lambda session: add(session, whose, pairs))

    @reads
    def list(self, session: Session, user_id: str | None) -> Sequence[Synonym]:
        return listing(session, user_id or SHARED)

    async def remove(self, user_id: str | None, keyword: str, synonym: str | None) -> int:
        whose = user_id or SHARED
        return await self._database.write([whose], lambda session: remove(session, whose, keyword, synonym))

    @reads
    def of(self, session: Session, user_id: str, words: Sequence[str]) -> Mapping[str, Sequence[tuple[str, float]]]:
        return synonyms_of(session, user_id, words)

    @reads
    def cooccurrence(self, session: Session, where: Filter, words: Sequence[str]) -> Cooccurrence:
        """Count the keywords that occur together with these words in the memories that match."""
        asked = list(dict.fromkeys(map(normalise, words)))
        keyword, mine = KeywordRow.keyword, KeywordRow.user_id == where.user_id
        # Sorting and counting are done here: asked to do it, SQLite would walk through all keywords of the user.
        having = session.scalars(select(KeywordRow.memory_id).where(mine, keyword.in_(asked))).all()
        newest = sorted(set(having), reverse=True)[:NEWEST]
        ids = session.scalars(select(MemoryRow.id).where(*conditions(where), MemoryRow.id.in_(newest))).all()
        together = Counter(session.scalars(select(keyword).where(mine, KeywordRow.memory_id.in_(ids))).all())
        often = {word: count for word, count in together.most_common(COMPANIONS + len(asked)) if word not in asked}
        if not often:
            return Cooccurrence()
        in_all = select(keyword, func.count()).where(mine, keyword.in_(often)).group_by(keyword)
        population = select(func.count()).select_from(MemoryRow).where(MemoryRow.user_id == where.user_id)
        return Cooccurrence(
            population=session.scalar(population) or 0,
            asked=len(ids),
            together=often,
            holders=dict(session.execute(in_all).all()),
        )


class Relations(Repository):
    """Relations of one user's memories. Memories are named by id or memory_key."""

    @reads
    def of(self, session: Session, user_id: str, memory_id: str) -> Sequence[Relation]:
        """Return the relations of a memory in both directions, oldest first."""
        memory_id = (memory_row(session, user_id, memory_id)).id
        touching = or_(RelationRow.memory_id == memory_id, RelationRow.target_id == memory_id)
        rows = session.execute(
            select(RelationRow.__table__)
            .where(RelationRow.user_id == user_id, touching)
            .order_by(RelationRow.created_at, RelationRow.memory_id, RelationRow.target_id)
        ).all()
        return [from_row(Relation, row) for row in rows]

    @writes
    def add(
        self,
        session: Session,
        user_id: str,
        memory_id: str,
        target_id: str,
        relation_type: RelationType,
        strength: float,
    ) -> Relation:
        """Add a relation, or change the strength of an existing one."""
        one, other = [memory_row(session, user_id, name) for name in (memory_id, target_id)]
        if one.id == other.id:
            raise InvalidInput("target_id", "is the memory itself")
        if one.source == COMPRESSED and relation_type == "refines":
            raise InvalidInput("relation_type", "of a compressed memory names its originals: use supports")
        same = (
            RelationRow.user_id == user_id,
            RelationRow.memory_id == one.id,
            RelationRow.target_id == other.id,
            RelationRow.relation_type == relation_type,
        )
        found = Relation(
            memory_id=one.id,
            relation_type=relation_type,
            target_id=other.id,
            strength=strength,
            created_at=session.scalar(select(RelationRow.created_at).where(*same)) or utc_now(),
        )
        session.execute(delete(RelationRow).where(*same))
        session.execute(insert(RelationRow), [{"user_id": user_id, **dict(found)}])
        return found

    @writes
    def remove(self, session: Session, user_id: str, memory_id: str, target_id: str) -> int:
        """Remove the relations from one memory to another; return their number."""
        one, other = [memory_row(session, user_id, name) for name in (memory_id, target_id)]
        if one.source == COMPRESSED:
            raise InvalidInput("memory_id", "is a compressed memory, whose originals are found by its relations")
        between = (RelationRow.memory_id == one.id, RelationRow.target_id == other.id)
        return count_changed(session, delete(RelationRow).where(RelationRow.user_id == user_id, *between))

"""mem0's operations over a Jiyi memory, with its arguments and results, for the server's routes and `AsyncMemory`.

The owner of a memory has other names: `run_id` is a `session_id` here, `app_id` a `group_id`. mem0's ids are UUIDs: a
ULID is written as one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

from pydantic import JsonValue

from ... import validation
from ...engine import delete_many, has_reader, ids_in, update_many, users_in
from ...engine import owner_of as stored_owner
from ...errors import InvalidInput, NotFound
from ...ids import from_uuid, time_of, to_uuid
from ...memory import Memory
from ...models import CandidateMemory, Deletion, MemoryItem, Message, Receipt, ReceiptState, Revision
from ...roles import is_instruction, is_person
from ...scope import Changes
from ...store.repositories.memories import Places
from ...write.change import WantedChange
from .filters import ANY, ENTITIES, FilterTree, Owners, entity, owner_of, user_shown
from .recalled_scores import recalled_scores
from .times import end_of, last_day, parse_time

NEEDED = "one of user_id, agent_id, app_id and run_id is needed"
MAX_USERS = 100  # in one search
MAX_SCANNED = 20_000  # memories that one filtered listing reads
QUESTION_MARKS = ("?", "？")
EVENTS = {"add": "ADD", "restore": "UPDATE", "archive": "DELETE", "supersede": "UPDATE", "merge": "UPDATE"}
SCOPES = {"agent_id": "agent_id", "run_id": "session_id", "app_id": "group_id"}
EVERYTHING = dict.fromkeys(ENTITIES, ANY)
CHANGEABLE = ("text", "metadata", "timestamp", "expiration_date")


class Reach(Protocol):
    """The users whose memories a caller may use."""

    @property
    def default_user(self) -> str | None: ...

    @property
    def all_users(self) -> bool: ...

    def may_see(self, user_id: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Everyone:
    """The reach of a program with its own store."""

    default_user: str | None = None
    all_users: bool = True

    def may_see(self, user_id: str) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Mem0:
    """One caller's view of a memory. `erase` deletes all data of a user."""

    memory: Memory
    reach: Reach
    actor: str = "user"
    erase: Callable[[str], Awaitable[Deletion]]

    async def add(
        self,
        messages: Any,
        *,
        metadata: dict[str, Any] | None = None,
        infer: bool = True,
        timestamp: Any = None,
        expiration_date: Any = None,
        wait: bool = True,
        **entities: str | None,
    ) -> dict[str, Any]:
        """Add messages: extract memories from them, or with `infer=False` keep each message as a memory."""
        said = parse_messages(messages)
        if not said:
            return {"results": [], "status": "SUCCEEDED", "event_id": None, "message": "nothing was said"}
        arguments: dict[str, Any] = {
            "user_id": self._owner(entities),
            **{own: entity(name, entities.get(name)) for name, own in SCOPES.items()},
            "metadata": metadata,
            "occurred_at": None if timestamp is None else parse_time("timestamp", timestamp),
            "expires_at": None if expiration_date is None else end_of("expiration_date", expiration_date),
            "actor": self.actor,
        }
        if not infer:
            candidates = [_as_said(message) for message in said if not is_instruction(message.role)]
            return added(await self.memory.add(candidates, **arguments))
        receipt = await self.memory.add(said, **arguments, wait=wait)
        if not _results(receipt) and _is_statement(said) and receipt.state is not ReceiptState.ACCEPTED:
            # mem0's users add single statements, such as "Likes pizza", and expect to find each in `get_all`.
            receipt = await self.memory.add(_as_said(said[0]), **arguments)
        return added(receipt)

    async def get(self, memory_id: str) -> dict[str, Any]:
        owner, own_id = await self._find(memory_id)
        return shown(await self.memory.get(own_id, user_id=owner))

    async def get_all(
        self,
        filters: Mapping[str, Any],
        *,
        page: int = 1,
        page_size: int = 100,
        categories: Sequence[str] | None = None,
    ) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of matching memories, and one page of them, newest first."""
        tree = FilterTree(filters)
        owners, scope = await self._owners(tree), self._scope(tree, categories)
        end = page * page_size
        if len(owners) == 1 and tree.is_only("user_id", *SCOPES):
            total = await self.memory.count(user_id=owners[0], **scope)
            found = await self._listed(owners[0], scope, end)
        else:
            found = []
            for owner in owners:
                found += await tree.matching(await self._listed(owner, scope, MAX_SCANNED), record)
            found.sort(key=lambda item: item.id, reverse=True)
            total = len(found)
        return total, [shown(item) for item in found[end - page_size : end]]

    async def search(
        self,
        query: str,
        filters: Mapping[str, Any],
        *,
        top_k: int = 20,
        threshold: float | None = None,
        reference_date: Any = None,
        categories: Sequence[str] | None = None,
        rerank: bool = False,
    ) -> list[dict[str, Any]]:
        """Return the best memories, best first; `score` is the probability that one answers the query. Without a
        threshold, wishes and limits of the user that always apply are among the last ones."""
        if rerank and not has_reader(self.memory):
            raise InvalidInput("rerank", "needs the reader, which the setting search.reader has turned off")
        tree = FilterTree(filters)
        owners, scope = await self._owners(tree), self._scope(tree, categories)
        if len(owners) > MAX_USERS:
            raise InvalidInput("filters", f"match {len(owners):,} users; a search covers at most {MAX_USERS}")
        limit = validation.whole("top_k", top_k)
        exact = tree.is_only("user_id", *SCOPES)
        asked_at = None if reference_date is None else parse_time("reference_date", reference_date)
        found: list[tuple[float, MemoryItem]] = []
        for owner in owners:
            if exact and len(owners) == 1 and threshold is None and not categories:
                scores = await recalled_scores(self.memory, query, owner, scope, limit=limit, asked_at=asked_at)
            else:
                result = await self.memory._search(
                    query,
                    user_id=owner,
                    with_messages=False,
                    min_relevance_score=threshold or 0.0,
                    limit=min(2 * limit, validation.MAX_LIMIT) if exact else validation.MAX_LIMIT,
                    asked_at=asked_at,
                    **scope,
                )
                scores = {hit.id: hit.relevance_score for hit in result.hits}
            items = await self.memory.get_many(list(scores), user_id=owner) if scores else ()
            matching = items if exact else await tree.matching(items, record)
            found += [(scores[item.id], item) for item in matching]
        found.sort(key=lambda one: one[0], reverse=True)
        return [{**shown(item), "score": score} for score, item in found[:limit]]

    async def update(self, memory_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change `text`, `metadata`, `timestamp` or `expiration_date`: new metadata is added to what is there, and null
        removes an expiration date."""
        [changed] = await self.update_many({memory_id: changes})
        return changed

    async def update_many(self, wanted: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Change memories by id, all of them or none."""
        changes = {memory_id: _changes(given) for memory_id, given in wanted.items()}
        found = [WantedChange(*await self._find(memory_id), changes[memory_id]) for memory_id in wanted]
        return [shown(item) for item in await update_many(self.memory, found, actor=self.actor)]

    async def delete(self, memory_id: str) -> Deletion:
        owner, own_id = await self._find(memory_id)
        return await self.memory.delete(own_id, user_id=owner)

    async def delete_many(self, memory_ids: Sequence[str]) -> list[Deletion]:
        """Delete memories, all of them or none; return a receipt for each of their users."""
        by_owner: dict[str, list[str]] = {}
        for owner, own_id in [await self._find(memory_id) for memory_id in memory_ids]:
            by_owner.setdefault(owner, []).append(own_id)
        done = await delete_many(self.memory, by_owner, with_sources=False, all_or_none=True)
        return list(done.values())

    async def delete_all(self, **entities: Any) -> list[Deletion]:
        """Delete the memories and messages of a user, agent, app or run, or of what they have in common; `*` is any. As
        in mem0, an agent, app or run without a user means that of all users. Return a receipt for each user."""
        given = {name: value for name, raw in entities.items() if (value := entity(name, raw)) is not None}
        if not given:
            raise InvalidInput("user_id", NEEDED)
        places = {own: None if given[name] == ANY else [given[name]] for name, own in SCOPES.items() if name in given}
        owners = await self._owners_to_delete(given, places)
        if places and given != EVERYTHING:
            alone = owner_of(given) if len(given) == 1 else None  # the user that is named after an agent, app or run
            whole = [owner for owner in owners if owner == alone]
        else:
            whole = owners
        parts = {owner: await ids_in(self.memory, owner, places) for owner in owners if owner not in whole}
        done = await delete_many(self.memory, parts, with_sources=True, all_or_none=False) if parts else {}
        return [*done.values(), *[await self.erase(owner) for owner in whole]]

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        owner, own_id = await self._find(memory_id)
        return [_event(revision, owner) for revision in await self.memory.history(own_id, user_id=owner)]

    async def entities(self) -> list[dict[str, Any]]:
        """List the users, and the agents, apps and runs that have memories of their own."""
        found = []
        for owner in await self._everyone() if self.reach.all_users else self._own_users():
            kind, _, name = ("user", "", owner) if user_shown(owner) else owner.partition(":")
            count = await self.memory.count(user_id=owner)
            newest = await self._listed(owner, {}, 1)
            at = newest[0].updated_at.isoformat() if newest else None
            times = {"created_at": at, "updated_at": at}
            found.append({"id": owner, "name": name, "type": kind, "total_memories": count, "owner": "jiyi", **times})
        return found

    def _own_users(self) -> list[str]:
        if self.reach.default_user is None:
            raise InvalidInput("user_id", "this needs a key for all users or for one")
        return [self.reach.default_user]

    async def _everyone(self) -> Sequence[str]:
        if not self.reach.all_users:
            raise InvalidInput("filters", "`*` needs a key for all users")
        return await self.memory.users()

    def _allowed(self, owner: str) -> str:
        """Check a user. Others do not exist for this caller."""
        validation.name("user_id", owner)
        if not self.reach.may_see(owner):
            raise NotFound(f"there is no user {owner!r}")
        return owner

    async def _owners_to_delete(self, given: Mapping[str, str], places: Places) -> list[str]:
        """Return the users that a deletion is about."""
        user_id = given.get("user_id")
        if user_id == ANY:
            return [owner for owner in await self._everyone() if user_shown(owner) or given == EVERYTHING]
        if user_id is not None or not self._sees_several():
            return [self._owner(given)]
        return [owner for owner in await users_in(self.memory, places) if self.reach.may_see(owner)]

    def _sees_several(self) -> bool:
        return self.reach.all_users or self.reach.default_user is None

    def _owner(self, entities: Mapping[str, Any]) -> str:
        named = {name: entity(name, value) for name, value in entities.items()}
        if named.get("user_id") is None and not self._sees_several():
            return str(self.reach.default_user)
        owner = owner_of(named)
        if owner is None:
            raise InvalidInput("user_id", NEEDED)
        return self._allowed(owner)

    async def _owners(self, tree: FilterTree) -> list[str]:
        """Return the users whose memories a filter can match, and which this caller may see."""
        owners: Owners | None = tree.owners()
        if not self._sees_several():
            named = tree.required("user_id")
            return [str(self.reach.default_user) if named is None else self._allowed(named)]
        if owners is None:
            raise InvalidInput("filters", NEEDED)
        if owners.names is not None:
            return [self._allowed(owner) for owner in sorted(owners.names)]
        places = {own: values for name, own in SCOPES.items() if (values := tree.allowed(name)) is not None}
        if not places:
            return list(await self._everyone())
        return [owner for owner in await users_in(self.memory, places) if self.reach.may_see(owner)]

    def _scope(self, tree: FilterTree, categories: Sequence[str] | None) -> dict[str, Any]:
        scope: dict[str, Any] = {own: tree.required(name) for name, own in SCOPES.items()}
        if metadata := tree.metadata():
            scope["metadata"] = metadata
        return {**scope, "tags": list(categories)} if categories else scope

    async def _find(self, memory_id: str) -> tuple[str, str]:
        """Return the user and the own id of a memory."""
        own_id = own_id_of(memory_id)
        only = None if self.reach.all_users else self.reach.default_user
        owner = only or await stored_owner(self.memory, own_id)
        if owner is None or not self.reach.may_see(owner):
            raise NotFound(f"there is no memory {memory_id}")
        return owner, own_id

    async def _listed(self, owner: str, scope: Mapping[str, Any], most: int) -> list[MemoryItem]:
        found: list[MemoryItem] = []
        cursor = None
        while len(found) < most:
            size = min(most - len(found), validation.MAX_LIMIT)
            page = await self.memory.list(user_id=owner, limit=size, cursor=cursor, **scope)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        return found


def parse_messages(messages: Any) -> list[Message]:
    """Return the messages of a string, a message or a list of messages, without system messages."""
    given = [messages] if isinstance(messages, (str, Mapping)) else messages
    if not isinstance(given, list) or not given:
        raise InvalidInput("messages", "must be a text, a message or a list of messages")
    found = []
    for at, one in enumerate(given):
        fields = {"content": one} if isinstance(one, str) else dict(one) if isinstance(one, dict) else {}
        if not fields.get("content") and fields.get("tool_calls"):
            continue  # it says nothing
        if isinstance(fields.get("content"), Mapping):  # a single part, such as an image
            fields["content"] = [fields["content"]]
        try:
            found.append(Message.model_validate(fields))
        except ValueError:
            raise InvalidInput(f"messages[{at}]", "must have a role and a content") from None
    return [message for message in found if not is_instruction(message.role)] or found


def _as_said(message: Message) -> CandidateMemory:
    """Return a message as a memory that says who said it."""
    own = message.speaker is None and is_person(message.role)
    said: dict[str, JsonValue] = {} if own else {"role": message.role, "speaker": message.speaker}
    return CandidateMemory(content=message.text, data=said)


def _is_statement(said: Sequence[Message]) -> bool:
    return len(said) == 1 and said[0].role == "user" and not said[0].text.rstrip().endswith(QUESTION_MARKS)


def _changes(given: Mapping[str, Any]) -> Callable[[MemoryItem], Changes]:
    """Return the fields of an update, from the state of the memory."""
    if unknown := given.keys() - CHANGEABLE:
        raise InvalidInput(min(unknown), f"cannot be changed; {', '.join(CHANGEABLE)} can")
    fields: Changes = {}
    if given.get("text") is not None:
        fields["content"] = given["text"]
    if given.get("timestamp") is not None:
        fields["occurred_at"] = parse_time("timestamp", given["timestamp"])
    if "expiration_date" in given:
        date = given["expiration_date"]
        fields["expires_at"] = None if date is None else end_of("expiration_date", date)
    added = None if given.get("metadata") is None else validation.json_object("metadata", given["metadata"])
    if not fields and added is None:
        raise InvalidInput("text", f"give at least one of {', '.join(CHANGEABLE)}")
    return lambda item: fields if added is None else {**fields, "metadata": {**item.metadata, **added}}


def told_of(deleted: Sequence[Deletion]) -> str:
    """Return the message for what `delete_all` did."""
    if any(one.memories or one.messages for one in deleted):
        return "Memories deleted successfully!"
    return "No memories matched: nothing was deleted"


def own_id_of(memory_id: str) -> str:
    if time_of(memory_id) is not None:
        return memory_id
    try:
        return from_uuid(memory_id)
    except (ValueError, AttributeError):
        raise InvalidInput("memory_id", f"{memory_id!r} is not a UUID") from None


def shown(item: MemoryItem) -> dict[str, Any]:
    """Return a memory in mem0's form."""
    return {
        "id": to_uuid(item.id),
        "memory": item.dated_text,
        "user_id": user_shown(item.user_id),
        "agent_id": item.agent_id,
        "app_id": item.group_id,
        "run_id": item.session_id,
        "hash": sha256(item.content.encode()).hexdigest()[:32],
        "metadata": dict(item.metadata) or None,
        "categories": list(item.tags),
        "created_at": item.created_at.isoformat(),
        "updated_at": item.updated_at.isoformat(),
        "timestamp": item.occurred_at.isoformat(),
        "expiration_date": last_day(item.expires_at),
    }


def record(item: MemoryItem) -> dict[str, Any]:
    """Return the fields that filters read."""
    return {**shown(item), "keywords": [*item.keywords, item.content]}


def _results(receipt: Receipt) -> list[MemoryItem]:
    return [item for item in receipt.memories if item.memory_type != "message"]


def added(receipt: Receipt) -> dict[str, Any]:
    waiting = receipt.state is ReceiptState.ACCEPTED
    status = "PENDING" if waiting else "FAILED" if receipt.state is ReceiptState.FAILED else "SUCCEEDED"
    results = [{**shown(item), "event": "ADD", "data": {"memory": item.dated_text}} for item in _results(receipt)]
    message = "the messages are stored; memories are extracted in the background" if waiting else "stored"
    return {"results": results, "status": status, "event_id": to_uuid(receipt.id), "message": message}


def _event(revision: Revision, owner: str) -> dict[str, Any]:
    before = None if revision.before is None else revision.before.get("content")
    at = revision.changed_at.isoformat()
    memory_id = to_uuid(revision.memory_id)
    return {
        "id": f"{memory_id}-{revision.version}",
        "memory_id": memory_id,
        "user_id": user_shown(owner),
        "old_memory": before,
        "new_memory": revision.after.get("content", before),
        "event": EVENTS.get(revision.action, "UPDATE"),
        "input": [],
        "categories": [],
        "metadata": revision.after.get("metadata") or None,
        "actor_id": revision.actor,
        "created_at": at,
        "updated_at": at,
    }


assert set(ENTITIES) == {"user_id", *SCOPES}  # noqa: S101 - the mapping covers every entity

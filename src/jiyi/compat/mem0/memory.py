"""mem0's classes `Memory` and `AsyncMemory` over a store of Jiyi."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from ... import sync
from ...errors import InvalidInput, NotFound
from ...memory import Memory as Engine
from .api import EVERYTHING, Everyone, Mem0, told_of
from .filters import ENTITIES

_UNSET: Any = object()


class AsyncMemory:
    """mem0's `AsyncMemory`. `where` is the path or URL of the store, by default the one of `jiyi`. An open `memory` can
    be given instead."""

    def __init__(self, config: Any = None, *, where: str | Path | None = None, memory: Engine | None = None) -> None:
        _warn_about(config)
        self._where = where
        self._memory = memory
        self._is_own = memory is None
        self._opening = asyncio.Lock()

    @classmethod
    def from_config(cls, config_dict: Any) -> Self:
        return cls(config_dict)

    async def _api(self) -> Mem0:
        async with self._opening:
            if self._memory is None:
                self._memory = await Engine.open(self._where)
        return Mem0(memory=self._memory, reach=Everyone(), actor="mem0", erase=self._memory.delete_all)

    async def add(
        self,
        messages: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Add messages; with `infer=False` each becomes a memory as it is. `memory_type` and `prompt` are refused."""
        _refuse("memory_type", memory_type is not None, "a procedure is stored with `Memory.sessions.record_skill`")
        _refuse("prompt", prompt is not None, "prompts are set with the setting llm.prompts")
        return await (await self._api()).add(
            messages,
            metadata=metadata,
            infer=infer,
            timestamp=timestamp,
            expiration_date=expiration_date,
            user_id=user_id,
            agent_id=agent_id,
            run_id=run_id,
        )

    async def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory, or None."""
        try:
            return await (await self._api()).get(memory_id)
        except (NotFound, InvalidInput):
            return None

    async def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        **older: Any,
    ) -> dict[str, Any]:
        """List memories, newest first. `user_id`, `agent_id`, `run_id` and `limit` of older versions work too."""
        wanted, top_k = _older_names(filters, top_k, older)
        _refuse("show_expired", show_expired, "expired memories are not returned")
        _, found = await (await self._api()).get_all(wanted, page_size=top_k)
        return {"results": found}

    async def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **older: Any,
    ) -> dict[str, Any]:
        """Search memories, best first. `threshold` is compared with a probability; by default nothing is cut off.
        Hits are always read, so `rerank` only asks that the reader is not turned off. `explain` is refused."""
        wanted, top_k = _older_names(filters, top_k, older)
        _refuse("show_expired", show_expired, "expired memories are not returned")
        _refuse("explain", explain, "`Memory.search(explain=True)` of Jiyi shows the parts of a score")
        found = await (await self._api()).search(
            query, wanted, top_k=top_k, threshold=threshold, reference_date=reference_date, rerank=rerank
        )
        return {"results": found}

    async def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: Any = _UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        changes: dict[str, Any] = {"text": text if text is not None else data, "metadata": metadata}
        if expiration_date is not _UNSET:
            changes["expiration_date"] = expiration_date
        with _value_errors(memory_id):
            await (await self._api()).update(memory_id, changes)
        return {"message": "Memory updated successfully!"}

    async def delete(self, memory_id: str) -> dict[str, str]:
        with _value_errors(memory_id):
            await (await self._api()).delete(memory_id)
        return {"message": "Memory deleted successfully!"}

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Delete the memories of a user, agent or run, or of what they have in common; an agent or run without a user
        means that of all users."""
        deleted = await (await self._api()).delete_all(user_id=user_id, agent_id=agent_id, run_id=run_id)
        return {"message": told_of(deleted)}

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        """List the changes of a memory, oldest first; none for one that does not exist."""
        try:
            return await (await self._api()).history(memory_id)
        except (NotFound, InvalidInput):
            return []

    async def reset(self) -> None:
        """Delete everything of all users."""
        await (await self._api()).delete_all(**EVERYTHING)

    async def chat(self, query: str) -> str:
        raise NotImplementedError("mem0 has no chat either: see jiyi.agents.MemoryAgent")

    async def aclose(self) -> None:
        """Close the store, unless it was given."""
        if self._is_own and self._memory is not None:
            await self._memory.close()
            self._memory = None

    async def __aenter__(self) -> Self:
        await self._api()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Memory:
    """mem0's `Memory`: the same, for synchronous callers."""

    def __init__(
        self, config: Any = None, *, where: str | Path | None = None, memory: sync.Memory | None = None
    ) -> None:
        self._is_own = memory is None
        self._sync = memory or sync.Memory.open(where)
        self._mem0 = AsyncMemory(config, memory=self._sync._memory)

    @classmethod
    def from_config(cls, config_dict: Any) -> Self:
        return cls(config_dict)

    def add(self, messages: Any, **options: Any) -> dict[str, Any]:
        """Add messages; see `AsyncMemory.add` for the options."""
        added: dict[str, Any] = self._sync._run(self._mem0.add(messages, **options))
        return added

    def get(self, memory_id: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._sync._run(self._mem0.get(memory_id))
        return found

    def get_all(self, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._sync._run(self._mem0.get_all(**options))
        return found

    def search(self, query: str, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._sync._run(self._mem0.search(query, **options))
        return found

    def update(self, memory_id: str, *args: Any, **options: Any) -> dict[str, str]:
        done: dict[str, str] = self._sync._run(self._mem0.update(memory_id, *args, **options))
        return done

    def delete(self, memory_id: str) -> dict[str, str]:
        done: dict[str, str] = self._sync._run(self._mem0.delete(memory_id))
        return done

    def delete_all(self, *args: Any, **entities: Any) -> dict[str, str]:
        done: dict[str, str] = self._sync._run(self._mem0.delete_all(*args, **entities))
        return done

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._sync._run(self._mem0.history(memory_id))
        return found

    def reset(self) -> None:
        self._sync._run(self._mem0.reset())

    def chat(self, query: str) -> str:
        raise NotImplementedError("mem0 has no chat either: see jiyi.agents.MemoryAgent")

    def close(self) -> None:
        """Close the store, unless it was given."""
        if self._is_own:
            self._sync.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _value_errors:  # noqa: N801 - reads as a statement
    """mem0 raises ValueError for a memory that does not exist."""

    def __init__(self, memory_id: str) -> None:
        self._memory_id = memory_id

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, NotFound):
            raise ValueError(f"Memory with id {self._memory_id} not found") from error


def _older_names(filters: Mapping[str, Any] | None, top_k: int, older: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Accept the entities and the limit as arguments, as mem0 did before version 2."""
    wanted = dict(filters or {})
    top_k = older.pop("limit", None) or top_k
    named = {name: older.pop(name) for name in ENTITIES if older.get(name) is not None}
    if twice := [name for name, value in named.items() if wanted.get(name, value) != value]:
        raise InvalidInput(twice[0], "differs from the one in filters")
    unknown = [name for name, value in older.items() if name not in ENTITIES or value is not None]
    if unknown:
        raise TypeError(f"unexpected argument {unknown[0]!r}")
    return wanted | named, top_k


def _refuse(argument: str, is_given: bool, instead: str) -> None:
    if is_given:
        raise InvalidInput(argument, f"is not offered: {instead}")


def _warn_about(config: Any) -> None:
    if config is not None:
        warnings.warn(
            "the configuration of mem0 has no effect: Jiyi has its own store, embedder and model (docs/settings.md)",
            stacklevel=3,
        )

"""The verbs about words that mean the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from .. import validation
from ..read.expand import Expansion
from ..synonyms import GivenPair, Synonym, checked
from .connection import Connection

if TYPE_CHECKING:
    from ..settings import Settings

AT_ONCE = 2_000  # pairs that the server takes in one request


class Synonyms(BaseModel):
    items: tuple[Synonym, ...]


class Changed(BaseModel):
    changed: int


class Removed(BaseModel):
    removed: int


class Words:
    _server: Connection
    settings: Settings

    async def add_synonyms(self, pairs: Iterable[GivenPair], *, user_id: str | None = None) -> int:
        """Teach it words that mean the same, for one user or, without `user_id`, for all. → how many are new"""
        whose = await self._whose(user_id)
        given = [
            {"keyword": one, "synonym": other, "similarity": similarity}
            for (one, other), similarity in checked(pairs).items()
        ]
        changed = 0
        for start in range(0, len(given), AT_ONCE):
            body = {"pairs": given[start : start + AT_ONCE], "shared": user_id is None}
            # Taught twice is taught once, but then how many were new would be told wrongly: so it is not asked again.
            changed += (await self._server.ask("POST", "/v1/synonyms", Changed, params=whose, body=body)).changed
        return changed

    async def synonyms(self, *, user_id: str | None = None) -> Sequence[Synonym]:
        """The pairs that were added: a user's own and the shared ones, or, without `user_id`, the shared ones."""
        found = (await self._server.get("/v1/synonyms", Synonyms, **await self._whose(user_id))).items
        return [pair for pair in found if user_id is not None or pair.shared]

    async def remove_synonym(self, keyword: str, synonym: str | None = None, *, user_id: str | None = None) -> int:
        """Remove one pair, or all pairs of a word: a user's own or, without `user_id`, shared ones. → how many"""
        params = await self._whose(user_id)
        params["keyword"] = validation.name("keyword", keyword)
        params["synonym"] = validation.optional_name("synonym", synonym)
        params["shared"] = user_id is None
        return (await self._server.ask("DELETE", "/v1/synonyms", Removed, params=params)).removed

    async def expand_keywords(self, keywords: Sequence[str], *, user_id: str) -> Expansion:
        """Other words for these: synonyms, and words that go together with them in this user's memories."""
        body = {"keywords": validation.names("keywords", keywords)}
        whose = {"user_id": validation.name("user_id", user_id)}
        return await self._server.ask(
            "POST", "/v1/keywords/expand", Expansion, params=whose, body=body, repeatable=True
        )

    async def _whose(self, user_id: str | None) -> dict[str, Any]:
        """The user of a request. What is everybody's is asked for by somebody, too."""
        if user_id is not None:
            return {"user_id": validation.name("user_id", user_id)}
        return {"user_id": (await self._server.who()).default_user or self.settings.user}

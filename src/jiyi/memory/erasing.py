"""The verbs that delete for good."""

from __future__ import annotations

from collections.abc import Sequence

from .. import validation
from ..embed.remembered import RememberedQueries
from ..errors import JiyiError
from ..models import Deletion
from ..text_cache import clear_text_caches
from .looking import Looking


class Erasing(Looking):
    async def delete(self, memory_id: str, *, user_id: str, with_sources: bool = False) -> Deletion:
        """Remove a memory and all that belongs to it, its history included. This cannot be undone.

        A profile or an episode loses the lines that came from it. The raw messages that it came from go with the last
        memory that needs them; `with_sources` removes them now, with everything that came from nothing else.

            gone = await memory.delete(found.hits[0].id, user_id="mei")
        """
        from ..keep.erase import erase

        memory = await self.get(memory_id, user_id=user_id)
        done = await erase(
            self._store, self._embedder, self._rules, memory.user_id, [memory.id], with_sources=bool(with_sources)
        )
        return await self._erased(memory.user_id, done)

    async def delete_all(self, user_id: str) -> Deletion:
        """Remove everything of exactly this user. This cannot be undone."""
        from ..keep.erase import erase_all

        return await self._erased(user_id, await erase_all(self._store, validation.name("user_id", user_id)))

    async def vacuum(self) -> Sequence[str]:
        """Rewrite the database without what was deleted: scraps in unused corners of a file, dead rows in PostgreSQL.
        It takes time in proportion to the database, and others wait for it. → what is left, and what would end it"""
        return tuple(await self._store.vacuum())

    async def _erased(self, user_id: str, done: Deletion) -> Deletion:
        """The one place that knows where traces can be outside the database: the files of a workspace, kept answers,
        remembered queries, and what was worked out of texts."""
        clear_text_caches()
        removed, notes = dict(done.removed), list(done.notes)
        if isinstance(self._embedder, RememberedQueries):
            self._embedder.forget()
        if answers := await self._answers.forget(user_id):
            removed["kept answers"] = answers
        if self._files is not None and self._files.workspace.covers(user_id):
            try:
                notes += (await self._files.sync(user_id)).problems
            except (JiyiError, OSError) as error:
                notes.append(f"it may still stand in the files: {error} — `jiyi workspace sync` makes up for it")
        return done.model_copy(update={"removed": removed, "notes": tuple(notes)})

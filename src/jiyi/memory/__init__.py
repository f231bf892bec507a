"""The engine. A verb checks its arguments and runs its stages, which are in `write` and `read`.

`Memory` has all verbs; each of these files has those of one kind.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from ..embed import Embedder, resolve
from ..embed.remembered import RememberedQueries
from ..errors import InvalidInput
from .carrying import Carrying
from .finding import Finding
from .health import Watching
from .keeping import Keeping
from .keys import Keys
from .measuring import Measuring
from .upkeep import Upkeep
from .words import Words
from .workspace import Workspaces

if TYPE_CHECKING:
    from ..settings import Settings
    from ..write.drafts import Extractor

__all__ = ["Memory"]


class Memory(Carrying, Finding, Words, Measuring, Watching, Keeping, Upkeep, Keys, Workspaces):
    """A long-term memory.

    async with Memory.open() as memory:
        await memory.add("我吃素，对花生过敏", user_id="mei")
        found = await memory.search("what can she eat?", user_id="mei")
    """

    @classmethod
    def open(
        cls,
        where: str | Path | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        extractor: Extractor | None = None,
        workspace: str | Path | None = None,
        workspace_user: str | None = None,
        key: str | None = None,
    ) -> Self:
        """A memory at a path or URL, by default in a file in the user's data directory. Behind `http://` or `https://`
        there is a server (`jiyi serve`), to which `key` opens.

        With a `workspace`, a folder, memories are also files that a person can edit: DIR/context/memory.md of the
        `workspace_user`, or DIR/<user>/context/memory.md of each user.

        Use it as `async with Memory.open() as memory:`, or as `memory = await Memory.open()` with a later
        `await memory.close()`.
        """
        from ..settings import load_settings
        from ..store import open_store

        settings = settings or load_settings()
        if str(where or settings.url or "").lower().startswith(("http://", "https://")):
            from ..client import Memory as Client

            client = Client.open(
                where,
                settings=settings,
                embedder=embedder,
                extractor=extractor,
                workspace=workspace,
                workspace_user=workspace_user,
                key=key,
            )
            return cast("Self", client)
        if key is not None:
            raise InvalidInput("key", "is for a server: a file or a database has none")
        embedder = embedder or resolve(settings)
        if settings.cache.max_query_vectors:
            embedder = RememberedQueries(embedder, settings.cache.max_query_vectors)
        memory = cls(open_store(where or settings.url, settings), embedder, settings, extractor)
        memory.where = None if where is None else str(where)
        folder = settings.workspace.path if workspace is None else Path(workspace)
        if folder is not None:
            from ..files.keeper import Files

            memory._files = Files(folder, workspace_user or settings.workspace.user, settings)
        return memory

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

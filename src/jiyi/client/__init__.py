"""The same memory, behind a server: `Memory` has the engine's verbs and asks over HTTP.

    async with jiyi.client.Memory("https://memory.example.org", key="jiyi_…") as memory:
        await memory.add("我吃素，对花生过敏", user_id="mei")

`Memory.open("http://…")` gives one, also that of `jiyi.sync`, so a program need not know where its memory lies.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self

from .. import memory as engine
from ..errors import AccessDenied, InvalidInput
from ..metrics import Meter
from ..settings import load_settings
from .connection import Connection, is_address
from .elsewhere import Elsewhere
from .finding import Finding
from .keeping import Keeping
from .keys import Keys
from .words import Words
from .working import Working
from .writing import Writing

if TYPE_CHECKING:
    from ..embed import Embedder
    from ..settings import Settings
    from ..write.drafts import Extractor

__all__ = ["Memory"]


class Memory(Writing, Finding, Words, Working, Keeping, Keys, Elsewhere, engine.Memory):
    """A memory on a server. What the engine makes out of other verbs (`observe`, `end_session`, `add_summary`,
    `record_skill`, `import_chats`) works as it does there, out of these."""

    def __init__(self, url: str, *, key: str | None = None, settings: Settings | None = None) -> None:
        """Nothing is asked before it is opened or used. Without `key`, the setting `client.key` counts."""
        self.settings = settings = settings or load_settings()
        self.where = url
        self.meter = Meter()
        kept = settings.client.key
        self._server = Connection(url, key or (None if kept is None else kept.get_secret_value()), settings.client)
        self._llm = self._files = None  # the server's is its own
        self._turns = deque()
        self._observing = None
        self._accepted = self._failed = 0

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
        """The memory of the server at this address."""
        settings = settings or load_settings()
        address = str(where or settings.url or "")
        if not is_address(address):
            raise InvalidInput("where", f"must be the address of a server (http://… or https://…), not {address!r}")
        theirs = {
            "embedder": embedder,
            "extractor": extractor,
            "workspace": workspace,
            "workspace_user": workspace_user,
        }
        for name, given in theirs.items():
            if given is not None:
                raise InvalidInput(name, "is the server's business: set it there")
        return cls(address, key=key, settings=settings)

    async def _start(self) -> None:
        """Ask who we are, so that a wrong address or key is noticed here."""
        await self._server.open()

    async def close(self) -> None:
        """Let go of the connections. What was observed is taken in first."""
        await self.flush()
        await self._server.close()

    @property
    def _store(self) -> NoReturn:  # type: ignore[override]
        """There is none here. A verb of the engine that is not among a client's would ask for it."""
        raise AccessDenied("this is not served to clients: do it where the store is")

"""The areas of a `Memory`: groups of less common operations. Each is loaded when it is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..engine import Engine
    from ..transfer.imports import Add, Count
    from .background import BackgroundJobs
    from .jobs import Jobs
    from .keys import Keys
    from .maintenance import Maintenance
    from .sessions import Sessions, TurnQueue
    from .synonyms import Relations, Synonyms
    from .transfer import Transfer
    from .usage import Usage
    from .workspace import Workspace


class Areas:
    """The areas of a memory with an engine of its own."""

    _engine: Engine
    _background: BackgroundJobs
    _turns: TurnQueue
    add: Add
    count: Count

    @cached_property
    def jobs(self) -> Jobs:
        """Jobs: their state, waiting for them, workers."""
        from .jobs import Jobs

        return Jobs(self._engine, self._background)

    @cached_property
    def keys(self) -> Keys:
        """API keys of the server."""
        from .keys import Keys

        return Keys(self._engine)

    @cached_property
    def synonyms(self) -> Synonyms:
        """Words with the same meaning."""
        from .synonyms import Synonyms

        return Synonyms(self._engine)

    @cached_property
    def relations(self) -> Relations:
        """Relations between memories."""
        from .synonyms import Relations

        return Relations(self._engine)

    @cached_property
    def workspace(self) -> Workspace:
        """Memories as files."""
        from .workspace import Workspace

        return Workspace(self._engine)

    @cached_property
    def maintenance(self) -> Maintenance:
        """Compression, verification and repair."""
        from .maintenance import Maintenance

        return Maintenance(self._engine)

    @cached_property
    def transfer(self) -> Transfer:
        """Import, export and backups."""
        from .transfer import Transfer

        return Transfer(self._engine, self.add, self.count)

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions of agents."""
        from .sessions import Sessions

        return Sessions(self.add, self.jobs, self._turns, has_model=self._engine.slow_extractor is not None)

    @cached_property
    def usage(self) -> Usage:
        """Metrics, recalls and overviews."""
        from .usage import Usage

        return Usage(self._engine, self._turns)

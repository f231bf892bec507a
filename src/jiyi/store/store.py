"""The store: repositories over one SQL database. Every call names its user; none can reach another user's rows."""

from .additions import Additions
from .change_feed import Changes, Erasures
from .checks import Checks
from .contract import StoreInfo
from .database import Database
from .deletions import Deletions
from .edits import Edits, History
from .engine_rows import ProjectedMemories, Projections
from .entries import IndexEntries
from .files import Files
from .index_rows import IndexRows
from .jobs import Jobs
from .keys import Keys
from .link_rows import Relations, Synonyms
from .maintenance import Maintenance
from .memories import Memories
from .messages import Messages, Units
from .overview_rows import LlmUsage, Overviews, Recalls, Statistics
from .record_io import Records
from .secrets import Secrets


class Store:
    """All repositories of one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.additions = Additions(database)
        self.changes = Changes(database)
        self.checks = Checks(database)
        self.deletions = Deletions(database)
        self.edits = Edits(database)
        self.entries = IndexEntries(database)
        self.erasures = Erasures(database)
        self.files = Files(database)
        self.history = History(database)
        self.index_rows = IndexRows(database)
        self.jobs = Jobs(database)
        self.keys = Keys(database)
        self.llm_usage = LlmUsage(database)
        self.maintenance = Maintenance(database)
        self.memories = Memories(database)
        self.messages = Messages(database)
        self.projected = ProjectedMemories(database)
        self.projections = Projections(database)
        self.overviews = Overviews(database)
        self.recalls = Recalls(database)
        self.records = Records(database)
        self.relations = Relations(database)
        self.secrets = Secrets(database)
        self.statistics = Statistics(database)
        self.synonyms = Synonyms(database)
        self.units = Units(database)

    async def start(self) -> None:
        """Connect, and create or migrate the schema."""
        await self.database.start()

    async def close(self) -> None:
        """Wait for running transactions and disconnect."""
        await self.database.close()

    async def info(self) -> StoreInfo:
        return await self.database.info()

"""The store: repositories over one SQL database. Every call names its user; none can reach another user's rows."""

from .database import Database
from .repositories.additions import Additions
from .repositories.change_feed import Changes, Erasures
from .repositories.deletions import Deletions
from .repositories.index_entries import IndexEntries
from .repositories.index_rows import IndexRows
from .repositories.job_queue import Jobs
from .repositories.key_rows import Keys
from .repositories.link_rows import Relations, Synonyms
from .repositories.memories import Memories
from .repositories.messages import Messages, Units
from .repositories.overview_rows import LlmUsage, Overviews, Recalls, Statistics
from .repositories.revisions import Edits, History
from .secrets import Secrets
from .upkeep.aged_rows import Maintenance
from .upkeep.engine_memories import ProjectedMemories
from .upkeep.engine_rows import Projections
from .upkeep.file_rows import Files
from .upkeep.integrity import Checks
from .upkeep.row_export import Records
from .write_set import StoreInfo


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

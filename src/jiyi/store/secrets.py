"""Secrets of the store: random, made with it, and the same for all its processes. They are in no export and no answer
of the server, and a copy or backup has its own."""

from secrets import token_bytes

from sqlalchemy import Connection, LargeBinary, delete, insert, select
from sqlalchemy.orm import Mapped, mapped_column

from ..errors import StoreError
from .database import Database, Repository
from .schema.columns import Base, short_text

FENCE = "fence"  # key of the marks around recalled text
BYTES = 32


class SecretRow(Base):
    """A secret of the store."""

    __tablename__ = "secrets"

    name: Mapped[str] = mapped_column(short_text(64), primary_key=True)
    value: Mapped[bytes] = mapped_column(LargeBinary)


def renew(connection: Connection) -> None:
    """Make new secrets, for a new store or a copy."""
    connection.execute(delete(SecretRow))
    connection.execute(insert(SecretRow), [{"name": FENCE, "value": token_bytes(BYTES)}])


class Secrets(Repository):
    """Reads secrets, each once."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._fence: bytes | None = None

    async def fence(self) -> bytes:
        """Return the key of the marks around recalled text."""
        if self._fence is None:
            stored = select(SecretRow.value).where(SecretRow.name == FENCE)
            self._fence = await self._database.read(None, lambda session: session.scalar(stored))
        if self._fence is None:
            raise StoreError("the store has lost its secret: the table `secrets` is empty")
        return self._fence

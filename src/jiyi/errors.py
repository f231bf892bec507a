"""Everything Jiyi raises.

    JiyiError
    ├── InvalidInput            an argument is wrong; `.argument` names it (also a ValueError)
    ├── NotFound                no such memory for this user (also a LookupError)
    ├── VersionConflict         somebody changed the memory meanwhile: read it again, then retry
    ├── IdempotencyConflict     the key was used before for something else
    ├── SettingsError           a setting is wrong or unknown
    ├── MissingExtra            a package is not installed; the message says which extra to install
    ├── StoreError              the database
    │   ├── StoreUnavailable    locked, full, read-only, gone or not reached: nothing was written, retry later
    │   │   └── ConnectionLost  to a database or a server, halfway: what was being written may or may not be kept
    │   ├── NotAStore           the file is something else, or damaged
    │   └── SchemaTooNew        written by a newer Jiyi: upgrade
    ├── WorkspaceError          the files of a workspace cannot be used; nothing of them was changed
    ├── LlmError                the language model; `.temporary` says whether trying later can help
    │   ├── LlmUnavailable      not reached, too busy or too slow: try later, after `.retry_after_s` if it is set
    │   │   └── LlmOverBudget   this user's tokens or costs of the hour are spent
    │   ├── LlmBadReply         it answered nonsense: another try may do better
    │   └── LlmRefused          it will not: a wrong key, an unknown model, a request or content it refuses
    ├── AccessDenied            a server does not let this caller do this: no key, a wrong one, or not over HTTP at all
    ├── ServerError             a server failed, or what answers is none of Jiyi's
    └── MemorySearchError       searching and what it needs
        ├── EmbeddingError      the embedder failed or answered nonsense
        │   └── EmbeddingModelChanged   the memories carry vectors of another model: re-embed
        └── VectorSearchError   the vector leg cannot run on this database

The classes say what a caller can do about it; the message says what happened, to which id, and the next step.
"""


class JiyiError(Exception):
    """Jiyi could not do this."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__ or type(self).__name__)


class InvalidInput(JiyiError, ValueError):
    """An argument is wrong."""

    def __init__(self, argument: str, problem: str) -> None:
        self.argument = argument
        self.problem = problem
        super().__init__(f"{argument}: {problem}")


class NotFound(JiyiError, LookupError):
    """There is no such memory for this user."""


class VersionConflict(JiyiError):
    """The memory was changed meanwhile."""

    def __init__(self, memory_id: str, expected: int, actual: int) -> None:
        self.memory_id = memory_id
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"memory {memory_id} is at version {actual}, not {expected}: read it again, then repeat the change"
        )


class IdempotencyConflict(JiyiError):
    """This idempotency key was used before for something else."""


class SettingsError(JiyiError):
    """A setting is wrong."""


class MissingExtra(JiyiError):
    """A package that this needs is not installed."""

    def __init__(self, extra: str, package: str) -> None:
        self.extra = extra
        super().__init__(f"this needs the package {package}: pip install 'jiyi[{extra}]'")


class StoreError(JiyiError):
    """The database failed."""


class StoreUnavailable(StoreError):
    """The database cannot be used right now; nothing was written."""


class ConnectionLost(StoreUnavailable):
    """The connection to the database server was lost; what was being written may or may not be kept."""


class NotAStore(StoreError):
    """This is not a Jiyi database."""


class SchemaTooNew(StoreError):
    """The database was written by a newer Jiyi."""


class WorkspaceError(JiyiError):
    """The workspace cannot be used."""


class LlmError(JiyiError):
    """The language model failed."""

    temporary = False
    retry_after_s: float | None = None


class LlmUnavailable(LlmError):
    """The language model cannot be reached right now."""

    temporary = True

    def __init__(self, message: str | None = None, *, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class LlmOverBudget(LlmUnavailable):
    """This user's budget for the language model is spent for now."""


class LlmBadReply(LlmError):
    """The language model answered something that cannot be used."""

    temporary = True


class LlmRefused(LlmError):
    """The language model refuses this request."""


class AccessDenied(JiyiError):
    """The server does not let this caller do this."""


class ServerError(JiyiError):
    """The server failed."""


class MemorySearchError(JiyiError):
    """The search failed."""


class EmbeddingError(MemorySearchError):
    """The embedder failed."""


class EmbeddingModelChanged(EmbeddingError):
    """The memories carry vectors of another embedding model."""


class VectorSearchError(MemorySearchError):
    """The vector leg cannot run."""

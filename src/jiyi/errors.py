"""Exceptions.

    JiyiError
    ├── InvalidInput                an argument is invalid; `.argument` names it (also a ValueError)
    ├── NotFound                    no such memory for this user (also a LookupError)
    ├── VersionConflict             the memory was changed by somebody else: read it again, then retry
    ├── IdempotencyConflict         the idempotency key was used for a different request
    ├── MemoryKeyTaken              another memory has the memory_key: `on_conflict` says what to do
    ├── UserErased                  all data of the user was deleted after this began: nothing was saved
    ├── SettingsError               a setting is invalid or unknown
    ├── MissingExtra                an optional package is not installed
    ├── StoreError                  the database failed
    │   ├── StoreUnavailable        locked, full, read-only or unreachable: nothing was written, retry later
    │   ├── ConnectionLost          the connection broke: the write may or may not have been committed
    │   ├── NotAStore               the file is not a Jiyi database, or damaged
    │   ├── SchemaTooNew            the database was written by a newer version
    │   └── SchemaTooOld            the database has an older schema: run `jiyi migrate`
    ├── EngineError                 an external engine failed; the store has everything and the engine catches up
    ├── WorkspaceError              the files of a workspace cannot be used; nothing was changed
    ├── LlmError                    the language model failed; `.temporary`: a retry can help, after `.retry_after_s`
    │   ├── LlmUnavailable          unreachable, overloaded or too slow
    │   ├── LlmOverBudget           the user's token budget of this hour is spent
    │   ├── LlmBadReply             the reply is invalid
    │   └── LlmRefused              wrong key, unknown model, or a request it does not accept
    ├── AccessDenied                the server requires a key with more rights, or does not offer this over HTTP
    ├── ServerError                 the server failed, or is not a Jiyi server
    └── MemorySearchError           the search failed
        ├── EmbeddingError          the embedder failed or returned an invalid vector
        ├── EmbeddingModelChanged   the stored vectors are of another model: reindex
        └── VectorSearchError       this database cannot search vectors

The class says what the caller can do; the message says what happened, to which id, and the next step.
"""


class JiyiError(Exception):
    """The operation failed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__ or type(self).__name__)


class InvalidInput(JiyiError, ValueError):
    """An argument is invalid."""

    def __init__(self, argument: str, problem: str) -> None:
        self.argument = argument
        self.problem = problem
        super().__init__(f"{argument}: {problem}")


class NotFound(JiyiError, LookupError):
    """There is no such memory for this user."""


class VersionConflict(JiyiError):
    """The memory was changed by somebody else."""

    def __init__(self, memory_id: str, expected: int, actual: int) -> None:
        self.memory_id = memory_id
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"memory {memory_id} is at version {actual}, not {expected}: read it again, then repeat the change"
        )


class IdempotencyConflict(JiyiError):
    """The idempotency key was used for a different request."""


class MemoryKeyTaken(JiyiError):
    """Another memory has the memory_key."""

    def __init__(self, message: str | None = None, *, memory_keys: tuple[str, ...] = ()) -> None:
        self.memory_keys = memory_keys
        named = ", ".join(map(repr, self.memory_keys[:5])) + (", …" if len(self.memory_keys) > 5 else "")
        instead = "use on_conflict='update' or on_conflict='skip', or choose other keys"
        told = f"memory_key {named}: taken; nothing was added: {instead}"
        super().__init__(message or (told if memory_keys else None))


class UserErased(JiyiError):
    """All data of the user was deleted after this began; nothing was saved."""

    def __init__(self, message: str | None = None, *, user_id: str | None = None) -> None:
        named = (
            None if user_id is None else f"all data of user {user_id!r} was deleted after this began: nothing was saved"
        )
        super().__init__(message or named)


class SettingsError(JiyiError):
    """A setting is invalid."""


class MissingExtra(JiyiError):
    """An optional package is not installed."""

    def __init__(self, extra: str, package: str) -> None:
        self.extra = extra
        super().__init__(f"this needs the package {package}: run pip install 'jiyi[{extra}]'")


class StoreError(JiyiError):
    """The database failed."""


class StoreUnavailable(StoreError):
    """The database is unavailable; nothing was written."""


class ConnectionLost(StoreError):
    """The connection to the server was lost; the write may or may not have been committed."""


class NotAStore(StoreError):
    """The file is not a Jiyi database."""


class SchemaTooNew(StoreError):
    """The database was written by a newer version of Jiyi."""


class SchemaTooOld(StoreError):
    """The database has the schema of an older version of Jiyi: run `jiyi migrate`."""


class EngineError(JiyiError):
    """An external engine failed."""


class WorkspaceError(JiyiError):
    """The workspace cannot be used."""


class LlmError(JiyiError):
    """The language model failed."""

    temporary = False

    def __init__(
        self, message: str | None = None, *, retry_after_s: float | None = None, most_attempts: int | None = None
    ) -> None:
        self.retry_after_s = retry_after_s
        self.most_attempts = most_attempts  # further ones would not help; None: as many as the settings allow
        super().__init__(message)


class LlmUnavailable(LlmError):
    """The language model is unavailable."""

    temporary = True


class LlmOverBudget(LlmError):
    """The user's token budget of this hour is spent."""

    temporary = True


class LlmBadReply(LlmError):
    """The language model returned an invalid reply."""

    temporary = True


class LlmRefused(LlmError):
    """The language model refused the request."""


class AccessDenied(JiyiError):
    """The server denied access."""


class ServerError(JiyiError):
    """The server failed."""


class MemorySearchError(JiyiError):
    """The search failed."""


class EmbeddingError(MemorySearchError):
    """The embedder failed."""


class EmbeddingModelChanged(MemorySearchError):
    """The stored vectors are of another embedding model."""


class VectorSearchError(MemorySearchError):
    """Vectors cannot be searched."""

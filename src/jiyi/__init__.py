"""Jiyi (记忆): long-term memory for AI agents.

The names are loaded when they are first used, so that `import jiyi` and the command line start quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .embed import Embedder
    from .errors import (
        AccessDenied,
        ConnectionLost,
        EmbeddingError,
        EmbeddingModelChanged,
        IdempotencyConflict,
        InvalidInput,
        JiyiError,
        LlmBadReply,
        LlmError,
        LlmOverBudget,
        LlmRefused,
        LlmUnavailable,
        MemorySearchError,
        MissingExtra,
        NotAStore,
        NotFound,
        SchemaTooNew,
        ServerError,
        SettingsError,
        StoreError,
        StoreUnavailable,
        VectorSearchError,
        VersionConflict,
        WorkspaceError,
    )
    from .files.values import Drift, SyncReport, SyncStep, WorkspaceFile, WorkspaceStatus
    from .keep.plans import Bundle, Compressed, CompressPlan, Member, Undone, UndoPlan, UndoStep, Upkept
    from .keep.values import Backup, Exported, MemoryImport, Verification
    from .keys import ApiKey, AuditEntry, NewKey
    from .keywords import KeywordExtractor
    from .memory import Memory
    from .metrics import MemoryMetrics, Metrics, Timing
    from .models import (
        UNSET,
        CacheUse,
        CandidateMemory,
        Check,
        Coverage,
        Deletion,
        Explanation,
        Health,
        Hit,
        ImportReport,
        Job,
        JobCounts,
        MemoryItem,
        Message,
        Migration,
        Observed,
        Page,
        Recall,
        Receipt,
        ReceiptState,
        Relation,
        Revision,
        ScorePart,
        SearchResult,
        SourceMessage,
        Stats,
    )
    from .settings import Settings
    from .synonyms import Synonym
    from .transfer.backup import restore_backup
    from .transfer.migrate import migrate_store
    from .write.drafts import Draft, Evidence, Extracted, Extractor, Said, Unit

__version__ = "0.1.0"

_HOMES = (
    "errors",
    "models",
    "files.values",
    "keep.values",
    "embed",
    "synonyms",
    "keys",
    "memory",
    "settings",
    "keywords",
    "write.drafts",
    "transfer.migrate",
    "metrics",
    "transfer.backup",
    "keep.plans",
)  # the cheap ones first

__all__ = [
    "UNSET",
    "AccessDenied",
    "ApiKey",
    "AuditEntry",
    "Backup",
    "Bundle",
    "CacheUse",
    "CandidateMemory",
    "Check",
    "CompressPlan",
    "Compressed",
    "ConnectionLost",
    "Coverage",
    "Deletion",
    "Draft",
    "Drift",
    "Embedder",
    "EmbeddingError",
    "EmbeddingModelChanged",
    "Evidence",
    "Explanation",
    "Exported",
    "Extracted",
    "Extractor",
    "Health",
    "Hit",
    "IdempotencyConflict",
    "ImportReport",
    "InvalidInput",
    "JiyiError",
    "Job",
    "JobCounts",
    "KeywordExtractor",
    "LlmBadReply",
    "LlmError",
    "LlmOverBudget",
    "LlmRefused",
    "LlmUnavailable",
    "Member",
    "Memory",
    "MemoryImport",
    "MemoryItem",
    "MemoryMetrics",
    "MemorySearchError",
    "Message",
    "Metrics",
    "Migration",
    "MissingExtra",
    "NewKey",
    "NotAStore",
    "NotFound",
    "Observed",
    "Page",
    "Recall",
    "Receipt",
    "ReceiptState",
    "Relation",
    "Revision",
    "Said",
    "SchemaTooNew",
    "ScorePart",
    "SearchResult",
    "ServerError",
    "Settings",
    "SettingsError",
    "SourceMessage",
    "Stats",
    "StoreError",
    "StoreUnavailable",
    "SyncReport",
    "SyncStep",
    "Synonym",
    "Timing",
    "UndoPlan",
    "UndoStep",
    "Undone",
    "Unit",
    "Upkept",
    "VectorSearchError",
    "Verification",
    "VersionConflict",
    "WorkspaceError",
    "WorkspaceFile",
    "WorkspaceStatus",
    "__version__",
    "migrate_store",
    "restore_backup",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            module = import_module(f".{home}", __name__)
            if hasattr(module, name):
                globals()[name] = value = getattr(module, name)
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

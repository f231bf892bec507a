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
    from .files.steps import Drift, SyncReport, SyncStep, WorkspaceFile, WorkspaceStatus
    from .keep.compress import Bundle, CompressPlan, CompressReport, Member
    from .keep.maintain import MaintenanceReport
    from .keep.undo import UndoPlan, UndoReport, UndoStep
    from .keep.verify import VerifyReport
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
        MessagePage,
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
    from .read.rerank import RerankCandidate, Reranker
    from .settings import Settings
    from .synonyms import Synonym
    from .transfer.backup import BackupReport, restore_backup
    from .transfer.export import ExportReport
    from .transfer.imports import MemoryImportReport
    from .transfer.migrate import migrate_store
    from .write.drafts import Draft, Evidence, Extracted, Extractor, Said, Unit

__version__ = "0.1.0"

_HOMES = (
    "errors",
    "models",
    "files.steps",
    "keep.verify",
    "embed",
    "synonyms",
    "keys",
    "memory",
    "settings",
    "keywords",
    "write.drafts",
    "transfer.export",
    "transfer.imports",
    "metrics",
    "transfer.backup",
    "transfer.migrate",
    "keep.compress",
    "keep.maintain",
    "keep.undo",
    "read.rerank",
)  # the cheap ones first

__all__ = [
    "UNSET",
    "AccessDenied",
    "ApiKey",
    "AuditEntry",
    "BackupReport",
    "Bundle",
    "CacheUse",
    "CandidateMemory",
    "Check",
    "CompressPlan",
    "CompressReport",
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
    "ExportReport",
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
    "MaintenanceReport",
    "Member",
    "Memory",
    "MemoryImportReport",
    "MemoryItem",
    "MemoryMetrics",
    "MemorySearchError",
    "Message",
    "MessagePage",
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
    "RerankCandidate",
    "Reranker",
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
    "UndoReport",
    "UndoStep",
    "Unit",
    "VectorSearchError",
    "VerifyReport",
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

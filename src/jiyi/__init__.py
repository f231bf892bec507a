"""Jiyi (记忆): long-term memory for AI agents. Names are loaded when they are first used, so that `import jiyi` touches
nothing and the command line starts quickly. `__init__.pyi` says the same to type checkers."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_NAMES = {  # by the module that has them
    ".embed": "Embedder",
    ".errors": (
        "AccessDenied ConnectionLost EmbeddingError EmbeddingModelChanged EngineError IdempotencyConflict "
        "InvalidInput JiyiError LlmBadReply LlmError LlmOverBudget LlmRefused LlmUnavailable MemoryKeyTaken "
        "MemorySearchError MissingExtra NotAStore NotFound SchemaTooNew SchemaTooOld ServerError "
        "SettingsError StoreError StoreUnavailable UserErased VectorSearchError VersionConflict "
        "WorkspaceError"
    ),
    ".files.steps": "Drift SyncReport SyncStep WorkspaceFile WorkspaceStatus",
    ".keep.compress": "Bundle CompressPlan CompressReport Member",
    ".keep.maintain": "MaintenanceReport",
    ".keep.undo": "UndoPlan UndoReport UndoStep",
    ".keep.verify": "VerifyReport",
    ".keys": "ApiKey AuditEntry NewKey",
    ".keywords": "KeywordExtractor",
    ".memory": "Memory",
    ".metrics": "MemoryMetrics Metrics Timing",
    ".models": (
        "RELEVANT UNSET Answer CacheUse CandidateMemory Check Coverage Deletion Explanation Health Hit "
        "ImportedFile ImportReport Job JobCounts MemoryItem Message MessagePage Migration Observed Page "
        "Recall Receipt ReceiptState Relation Revision RowResult ScorePart SearchMode SearchResult "
        "SourceMessage Stats"
    ),
    ".read.overview": "ChangeEntry ChangePage ReviewItem Subject UserSize",
    ".read.profile": "Profile ProfileLine",
    ".store.units": "MemUnit MemUnitPage",
    ".reader": "Passage Reader Verdict",
    ".scope": "Filters",
    ".settings": "Settings",
    ".synonyms": "Synonym",
    ".transfer.backup": "BackupReport restore_backup",
    ".transfer.export": "ExportReport",
    ".transfer.imports": "MemoryImportReport",
    ".transfer.schema_change": "migrate_store",
    ".write.drafts": "Draft Evidence Extracted Extractor Known Said Unit",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = [*sorted(_HOMES), "__version__"]  # noqa: PLE0604 - all are strings


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOMES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return __all__

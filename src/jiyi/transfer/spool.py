"""The spool of uploaded files: folders with the file and its status, which name the user they belong to."""

import json
import shutil
from hashlib import sha256
from pathlib import Path

from ..settings import Settings
from ..settings_files import data_dir

SPOOL_STATUS = "import.json"


def spool_of(settings: Settings, where: str | Path | None) -> Path:
    """Return the spool of a store; every process finds the same one."""
    store = str(Path(where or settings.url or "").absolute())
    return (settings.server.upload_dir or data_dir() / "imports") / sha256(store.encode()).hexdigest()[:16]


def forget_uploads(spool: Path, user_id: str) -> int:
    """Delete the uploads of a user, and return the number of those that waited to be imported."""
    removed = 0
    for folder in spool.glob("*/"):
        try:
            status = json.loads((folder / SPOOL_STATUS).read_bytes())
            owner, waits = status.get("user_id"), status.get("state", "running") == "running"
        except (OSError, ValueError, AttributeError):
            continue
        if owner == user_id:
            shutil.rmtree(folder, ignore_errors=True)
            removed += waits
    return removed

"""The spool of uploaded files: folders with the file and its status, which name the user they belong to."""

import json
import shutil
from hashlib import sha256
from pathlib import Path

from ..ids import new_id
from ..settings import Settings
from ..settings_files import data_dir
from ..store import location_of

SPOOL_STATUS = "import.json"


def spool_of(settings: Settings, where: str | Path | None) -> Path:
    """Return the spool of a store; every process finds the same one, whatever its working directory."""
    store = location_of(where or settings.url)
    return data_dir() / (settings.server.upload_dir or "imports") / sha256(store.encode()).hexdigest()[:16]


def remove_folder(folder: Path) -> None:
    """Remove a folder of the spool at once: a process that still writes into it cannot put a file back."""
    try:
        folder = folder.rename(folder.with_name(f"gone-{new_id()}"))
    except FileNotFoundError:  # another process was faster
        return
    except OSError:  # Windows does not rename a folder with an open file
        pass
    shutil.rmtree(folder, ignore_errors=True)


def forget_uploads(spool: Path, user_id: str, epoch: str) -> int:
    """Delete what is there of a deleted user, and return the number of uploads that waited to be imported. What began
    in the user's `epoch`, after the deletion, stays."""
    removed = 0
    for folder in spool.glob("*/"):
        try:
            status = json.loads((folder / SPOOL_STATUS).read_bytes())
            began_before = status.get("user_id") == user_id and status.get("epoch") != epoch
            waits = status.get("state", "running") == "running"
        except (OSError, ValueError, AttributeError):
            continue
        if began_before:
            remove_folder(folder)
            removed += waits
    return removed

"""The areas of a `Memory`: groups of less common operations."""

from .background import BackgroundJobs
from .jobs import Jobs
from .keys import Keys
from .maintenance import Maintenance
from .relations import Relations
from .sessions import Sessions, TurnQueue
from .synonyms import Synonyms
from .transfer import Transfer
from .usage import Usage
from .workspace import Workspace

__all__ = [
    "BackgroundJobs",
    "Jobs",
    "Keys",
    "Maintenance",
    "Relations",
    "Sessions",
    "Synonyms",
    "Transfer",
    "TurnQueue",
    "Usage",
    "Workspace",
]

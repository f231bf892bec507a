"""JSON logging to stderr, without secrets."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime

FIELDS = ("request_id", "method", "route", "status", "ms", "key_id", "client")
SECRETS = (
    (re.compile(r"jiyi_([0-9a-z]{26})_[A-Za-z0-9_-]{20,}"), r"jiyi_\1_***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',]+"), r"\1 ***"),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"), "sk-***"),
    (re.compile(r"(\w+://[^\s/:@]*):[^\s/@]+@"), r"\1:***@"),
    (re.compile(r"(?i)\b(password|passwd|secret|token|api[_-]?key)(\"?\s*[=:]\s*\"?)[^\s\"',&]+"), r"\1\2***"),
)


def redacted(text: str) -> str:
    """Replace what looks like a secret.

    >>> redacted("postgresql://mei:hunter2@db/jiyi")
    'postgresql://mei:***@db/jiyi'
    """
    for pattern, instead in SECRETS:
        text = pattern.sub(instead, text)
    return text


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted(record.getMessage()),
        }
        entry |= {name: getattr(record, name) for name in FIELDS if getattr(record, name, None) is not None}
        if record.exc_info:
            entry["trace"] = redacted(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False, default=str)


def start_logging(*, verbose: bool) -> None:
    """Configure logging of the server process. Requests are logged with `verbose` only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.INFO if verbose else logging.WARNING, force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)

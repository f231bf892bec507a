"""A query may be the conversation so far, one turn a line."""

from __future__ import annotations

import re

_WHO = re.compile(r"^\s*(?:<[^<>\n]{1,40}>|[^\s:：<>]{1,24})\s*[:：]\s*")


def turns(query: str) -> list[str]:
    """The turns of a dialogue without who said them; nothing for a plain question."""
    lines = [_WHO.sub("", line).strip() for line in query.splitlines()]
    said = [line for line in lines if any(map(str.isalnum, line))]
    return said if len(said) > 1 else []

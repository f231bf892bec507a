"""A query may be the conversation so far, one turn a line; and what stands in quotation marks belongs together."""

from __future__ import annotations

import re

_WHO = re.compile(r"^\s*(?:<[^<>\n]{1,40}>|[^\s:：<>]{1,24})\s*[:：]\s*")


def turns(query: str) -> list[str]:
    """The turns of a dialogue without who said them; nothing for a plain question."""
    lines = [_WHO.sub("", line).strip() for line in query.splitlines()]
    said = [line for line in lines if any(map(str.isalnum, line))]
    return said if len(said) > 1 else []


_QUOTED = re.compile(r"\"([^\"\n]{2,200})\"|“([^“”\n]{2,200})”|「([^「」\n]{2,200})」|《([^《》\n]{2,200})》")


def quoted(query: str) -> list[str]:
    """The phrases in quotation marks.

    >>> quoted('who said "blue bowls"? 谁说过“蓝色的碗”？')
    ['blue bowls', '蓝色的碗']
    """
    found = (next(filter(None, match.groups())) for match in _QUOTED.finditer(query))
    return [phrase for phrase in found if any(map(str.isalnum, phrase))]

"""The headings that name a type, in Chinese and English; a comment makes any other heading one of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from .format import quoted

Language = Literal["zh", "en"]

# The first name of each is the one that is written.
NAMES: dict[str, dict[Language, tuple[str, ...]]] = {
    "preference": {"en": ("Preferences", "Preference", "Likes and dislikes"), "zh": ("偏好", "喜好", "偏好设置")},
    "fact": {"en": ("Facts", "Fact"), "zh": ("事实", "事实信息")},
    "pattern": {"en": ("Patterns", "Pattern", "Habits"), "zh": ("模式", "规律", "习惯")},
    "profile": {"en": ("Profile", "About me"), "zh": ("画像", "个人资料", "关于我")},
    "group_profile": {"en": ("Group profile",), "zh": ("群组画像",)},
    "skill": {"en": ("Skills", "Skill"), "zh": ("技能",)},
    "lesson": {
        "en": ("Lessons", "Lesson", "Lessons learned", "Best practices"),
        "zh": ("经验", "经验教训", "最佳实践"),
    },
    "error_handling": {"en": ("Error handling", "Errors"), "zh": ("错误处理", "错误处理经验")},
    "episode": {"en": ("Episodes", "Episode"), "zh": ("情景", "经历")},
    "event": {"en": ("Events", "Event"), "zh": ("事件",)},
}
_TYPES = {
    name.casefold(): (memory_type, language)
    for memory_type, by_language in NAMES.items()
    for language, names in by_language.items()
    for name in names
}
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?=[ \t]|$)")
_TYPE_MARK = re.compile(r"<!--[ \t]*jiyi:type=(?P<type>[^\s<>]+)[ \t]*-->")
_LETTERS = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    title: str
    memory_type: str | None
    language: Language | None = None


def read_heading(line: str) -> Heading | None:
    found = _HEADING.match(line)
    if not found:
        return None
    title = _title(line[found.end() :])
    level = len(found["marks"])
    own = _TYPE_MARK.findall(title)
    if own:
        return Heading(level, title, unquote(own[-1]))
    known = _TYPES.get(_bare(title).casefold())
    return Heading(level, title, known[0], known[1]) if known else Heading(level, title, None)


def _title(rest: str) -> str:
    """Without the spaces around it and the marks that may close it. A pattern for this takes ages over many spaces."""
    title = rest.strip(" \t")
    closing = title.rstrip("#")
    return closing.rstrip(" \t") if not closing or closing[-1] in " \t" else title


def _bare(title: str) -> str:
    """Without what is no letter, before and after it."""
    first = _LETTERS.search(title)
    if first is None:
        return ""
    end = len(title)
    while not _LETTERS.match(title[end - 1]):
        end -= 1
    return title[first.start() : end]


def heading_line(memory_type: str, language: Language) -> str:
    """How the heading of a type is written."""
    names = NAMES.get(memory_type)
    if names:
        return f"## {names[language][0]}"
    return f"## {' '.join(memory_type.split())} <!-- jiyi:type={quoted(memory_type)} -->"

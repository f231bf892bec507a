"""What the tools answer, as text for a model: what comes from a memory is fenced as data, what Jiyi says is not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ...models import Hit
from ...text.fence import CLOSING, NOTICES, OPENING
from .outputs import (
    GetMemoryDetailOutput,
    ListedMemory,
    ListMemoriesOutput,
    MemorySearchResult,
    SearchMemoriesOutput,
    WrittenMemory,
)
from .schema import ToolLanguage


@dataclass(frozen=True, slots=True)
class Phrases:
    """What Jiyi says to a model, in one language."""

    language: ToolLanguage
    found: str
    nothing_stored: str
    nothing_matched: str
    best_left_out: str
    degraded: str
    part: str
    written: dict[str, str]
    listed: str
    none_listed: str
    next_page: str
    repeated: str
    unknown_tool: str
    bad_json: str
    bad_arguments: str
    missing: str
    not_an_argument: str
    not_found: str
    forgotten: str
    nothing_to_change: str
    only_recalled: str
    limited: str
    changed_meanwhile: str
    unavailable: str
    failed: str


PHRASES: dict[ToolLanguage, Phrases] = {
    "en": Phrases(
        language="en",
        found="{shown} of {total} found. These are summaries; get_memory_detail(memory_key) gives the full text.",
        nothing_stored="Nothing is stored for this user yet, so searching again will not help. Answer without.",
        nothing_matched=(
            "No memory matches. Try other words or fewer filters once; if that finds nothing either, answer without."
        ),
        best_left_out=(" Some are less relevant, at best {score:.2f}; a lower min_relevance_score shows them."),
        degraded="Note: a part of the search could not run ({problems}).",
        part="Characters {start} to {end} of {total}; the next part: offset={end}.",
        written={
            "saved": "Saved.",
            "known": "This was known already; nothing new was saved.",
            "updated": "Updated; what it was stays in its history.",
            "archived": "Put away: searches no longer find it. It can be restored.",
            "erased": "Erased for ever.",
        },
        listed="{shown} memories, newest first.",
        none_listed="There are no memories here.",
        next_page="More: list_memories with cursor={cursor}",
        repeated=(
            "You have just searched this, and the answer is the same; use what you have ({keys}). "
            "Search again only for something else."
        ),
        unknown_tool="There is no tool {name}. The tools are: {tools}.",
        bad_json='The arguments of {name} are no JSON object ({problem}). Send one, such as {{"query": "…"}}.',
        bad_arguments="{name} was not run, because its arguments are wrong:\n{problems}\nCorrect them and call again.",
        missing="is missing or empty",
        not_an_argument="is no argument of this tool; it takes {arguments}",
        not_found="There is no memory {key}. Use a key from search_memories or list_memories.",
        forgotten="The memory {key} was put away and can no longer be used.",
        nothing_to_change="Nothing was changed: give content, memory_type, importance or tags.",
        only_recalled="Nothing was saved: this only repeats what was recalled from memory.",
        limited=(
            "Too many memory calls: wait {seconds} seconds before the next one. "
            "Answer now with what you have already found."
        ),
        changed_meanwhile="The memory {key} was changed meanwhile. Read it with get_memory_detail, then try again.",
        unavailable="The memory cannot be used right now. Go on without it. ({problem})",
        failed="This could not be done: {problem}",
    ),
    "zh": Phrases(
        language="zh",
        found="共找到 {total} 条，显示 {shown} 条。以上为摘要；用 get_memory_detail(memory_key) 获取完整内容。",
        nothing_stored="该用户还没有任何记忆，再搜索也不会有结果。请直接回答。",
        nothing_matched="没有匹配的记忆。可以换个说法或减少过滤条件再试一次；仍然没有就直接回答。",
        best_left_out="另有相关度较低的记忆，最高 {score:.2f}；降低 min_relevance_score 可以看到，仅供参考。",
        degraded="注意：搜索的一部分未能执行（{problems}）。",
        part="第 {start} 到 {end} 个字符，共 {total} 个；下一部分：offset={end}。",
        written={
            "saved": "已保存。",
            "known": "这条记忆已经存在，没有新增内容。",
            "updated": "已更新；原内容保留在历史中。",
            "archived": "已收起：不会再被搜到，可以恢复。",
            "erased": "已彻底删除。",
        },
        listed="{shown} 条记忆，从新到旧。",
        none_listed="这里没有记忆。",
        next_page="还有更多：调用 list_memories，cursor={cursor}",
        repeated="你刚刚搜索过同样的内容，结果没有变化；请使用已有的结果（{keys}）。只有要找别的内容时才再搜索。",
        unknown_tool="没有名为 {name} 的工具。可用的工具：{tools}。",
        bad_json='{name} 的参数不是 JSON 对象（{problem}）。请发送 JSON 对象，例如 {{"query": "…"}}。',
        bad_arguments="{name} 未执行，因为参数有误：\n{problems}\n请改正后再调用。",
        missing="缺失或为空",
        not_an_argument="不是该工具的参数；可用参数：{arguments}",
        not_found="没有键为 {key} 的记忆。请使用 search_memories 或 list_memories 给出的键。",
        forgotten="记忆 {key} 已被收起，不能再使用。",
        nothing_to_change="没有任何修改：请给出 content、memory_type、importance 或 tags。",
        only_recalled="没有保存：内容只是重复了从记忆中召回的文字。",
        limited="调用记忆工具过于频繁：请等待 {seconds} 秒再调用。现在请用已经找到的内容回答。",
        changed_meanwhile="记忆 {key} 刚被修改过。请先用 get_memory_detail 重新读取，再试一次。",
        unavailable="记忆暂时不可用，请先不用记忆继续。（{problem}）",
        failed="未能完成：{problem}",
    ),
}


def fenced(lines: Iterable[str], phrases: Phrases) -> str:
    return "\n".join((OPENING, NOTICES[phrases.language], *lines, CLOSING))


def notes(hits: Iterable[Hit], language: ToolLanguage) -> str:
    """Found memories as one block of summaries with keys, fenced as data."""
    return fenced((result_line(MemorySearchResult.of(hit)) for hit in hits), PHRASES[language])


def tell_search(output: SearchMemoriesOutput, phrases: Phrases) -> str:
    parts = []
    if output.results:
        parts.append(fenced(map(result_line, output.results), phrases))
        parts.append(phrases.found.format(shown=len(output.results), total=output.total_found))
    else:
        nothing = phrases.nothing_matched if output.searched else phrases.nothing_stored
        left_out = output.best_left_out
        parts.append(nothing + (phrases.best_left_out.format(score=left_out) if left_out is not None else ""))
    if output.degraded:
        parts.append(phrases.degraded.format(problems="; ".join(output.degraded)))
    return "\n".join(parts)


def result_line(result: MemorySearchResult) -> str:
    about = f"{result.relevance_score:.2f}, {result.memory_type}, {_day(result.created_at)}"
    return f"- [{result.memory_key}] ({about}) {result.summary}"


def tell_list(output: ListMemoriesOutput, phrases: Phrases) -> str:
    if not output.memories:
        return phrases.none_listed
    parts = [fenced(map(_listed_line, output.memories), phrases), phrases.listed.format(shown=len(output.memories))]
    if output.next_cursor:
        parts.append(phrases.next_page.format(cursor=output.next_cursor))
    return "\n".join(parts)


def _listed_line(memory: ListedMemory) -> str:
    tags = "".join(f" #{tag}" for tag in memory.tags)
    return f"- [{memory.memory_key}] ({memory.memory_type}, {_day(memory.created_at)}){tags} {memory.summary}"


def tell_detail(output: GetMemoryDetailOutput, phrases: Phrases) -> str:
    about = f"- [{output.memory_key}] ({output.memory_type}, {_day(output.occurred_at)})"
    text = fenced((about, *(f"> {line}" for line in output.content.splitlines())), phrases)
    if output.next_offset is None:
        return text
    part = phrases.part.format(start=output.offset, end=output.next_offset, total=output.total_characters)
    return f"{text}\n{part}"


def tell_written(output: WrittenMemory, phrases: Phrases) -> str:
    line = f"- [{output.memory_key}] {output.summary}"
    return f"{phrases.written[output.outcome]}\n{fenced([line], phrases)}"


def _day(at: datetime) -> str:
    return at.date().isoformat()

"""Values of the engine as Rich renderables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from pydantic import JsonValue
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..metrics import Metrics
from ..models import (
    Deletion,
    Explanation,
    Hit,
    Job,
    MemoryItem,
    Page,
    Receipt,
    Revision,
    ScorePart,
    SearchResult,
    Stats,
    utc_now,
)
from ..models.shown_dates import with_dates
from .session import counted, plain

if TYPE_CHECKING:
    from ..keep.compress import Bundle, CompressPlan, CompressReport
    from ..keep.undo import UndoPlan, UndoReport, UndoStep
    from ..transfer.backup import BackupReport

BAR = 20


def when(at: datetime | None, zone: tzinfo | None = None) -> str:
    """Format a time in local time."""
    return "—" if at is None else at.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def day(at: datetime, zone: tzinfo | None = None) -> str:
    return when(at, zone)[:10]


def _summary(memory: MemoryItem) -> str:
    return with_dates(memory.summary, memory.data)


def memory_text(summary: str, *small: str) -> Text:
    """Format a summary with dim details below it."""
    below = [part for part in small if part]
    return Text.assemble(plain(summary), *([("\n" + " · ".join(map(plain, below)), "dim")] if below else []))


def score_text(score: float) -> Text:
    """Format a score: green is relevant, yellow is possibly relevant."""
    return Text(f"{score:.2f}", style="bold green" if score > 0.8 else "yellow" if score >= 0.6 else "bold")


def columns(*headers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", border_style="dim")
    for header in headers:
        is_text = header == headers[-1]
        table.add_column(header, overflow="fold", no_wrap=not is_text, justify="right" if header == "score" else "left")
    return table


def pairs(rows: Mapping[str, RenderableType] | None = None, *, style: str = "dim", title: str | None = None) -> Table:
    """Make a grid of names and values."""
    grid = Table(box=None, show_header=False, pad_edge=False, title=title, title_justify="left")
    grid.add_column(style=style, no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in (rows or {}).items():
        grid.add_row(name, plain(value) if isinstance(value, str) else value)
    return grid


def hits_table(found: SearchResult) -> Table:
    table = columns("score", "type", "when", "memory")
    for hit in found.hits:
        text = memory_text(hit.summary, hit.id)
        table.add_row(score_text(hit.relevance_score), plain(hit.memory_type), day(hit.occurred_at), text)
    if found.total_found > len(found.hits):
        table.caption = f"the best {len(found.hits)} of {found.total_found:,} hits; for more: --limit"
        table.caption_justify = "left"
    return table


def memories_table(page: Page) -> Table:
    table = columns("type", "when", "memory")
    for memory in page.items:
        tags = " ".join(f"#{tag}" for tag in memory.tags)
        text = memory_text(_summary(memory), memory.id, tags)
        table.add_row(plain(memory.memory_type), day(memory.occurred_at), text)
    return table


def receipt_list(receipt: Receipt) -> Group:
    """Mark new memories: those of one call share their creation time."""
    newest = max((memory.created_at for memory in receipt.memories), default=None)
    table = columns("", "type", "memory")
    for memory in receipt.memories:
        new = receipt.created > 0 and memory.created_at == newest
        mark = Text("+ new", style="green") if new else Text("= known", style="dim")
        table.add_row(mark, plain(memory.memory_type), memory_text(_summary(memory), memory.id))
    for memory in receipt.ended:
        table.add_row(
            Text("- ended", style="yellow"), plain(memory.memory_type), memory_text(_summary(memory), memory.id)
        )
    known = len(receipt.memories) - receipt.created
    numbers = {"new": receipt.created, "known already": known, "ended": len(receipt.ended)}
    return Group(table, ", ".join(f"{number:,} {name}" for name, number in numbers.items() if number or name == "new"))


def job_card(job: Job) -> Table:
    rows: dict[str, RenderableType] = {
        "job": job.id,
        "user": job.user_id,
        "session": job.session_id or "—",
        "state": job.state,
        "attempts": str(job.attempts),
        "next attempt": when(job.next_attempt_at),
        "created": when(job.created_at),
        "updated": when(job.updated_at),
        "problems": "\n".join(job.problems),
    }
    return pairs({name: value for name, value in rows.items() if value})


REMOVED = {  # what a deletion counts, in words where its name with or without an s is none
    "unit_messages": ("message in a unit", "messages in units"),
    "job_memories": ("memory of a job", "memories of jobs"),
    "llm_usage": ("count of model usage", "counts of model usage"),
    "packed_indexes": ("packed index", "packed indexes"),
    "engine_users": ("position in an engine", "positions in engines"),
    "file_entries": ("line of a file", "lines of files"),
}


def deletion_line(gone: Deletion, again: Sequence[MemoryItem] = ()) -> str:
    """Describe a deletion; `again` are the memories that hold again because their successor is gone."""
    memories = counted(gone.memories, "memory", "memories")
    lines = [f"deleted {memories} and {counted(gone.messages, 'message', 'messages')}"]
    rest = [
        counted(number, *REMOVED.get(kind, (kind.removesuffix("s"), kind)))
        for kind, number in gone.removed.items()
        if kind not in ("memories", "messages")
    ]
    if rest:
        lines.append(f"also deleted: {', '.join(rest)}")
    for what, ids in (("derived", gone.derived), ("rewritten", gone.rewritten)):
        if ids:
            lines.append(f"{what}: {', '.join(ids)}")
    lines += [f"holds again: {plain(_summary(memory))} ({memory.id})" for memory in again]
    return "\n".join(lines)


def backup_line(done: BackupReport) -> str:
    return f"backed up {done.store} to {_backup(done)}"


def restored_line(done: BackupReport) -> str:
    return f"{done.store} now holds what is in {_backup(done)}"


def _backup(done: BackupReport) -> str:
    held = f"{counted(done.memories, 'memory', 'memories')} of {counted(done.users, 'user', 'users')}"
    return f"{done.path}: {held}, {done.size_bytes / 1e6:,.1f} MB"


def explanations(found: SearchResult, *, in_full: bool = False) -> Group:
    return Group(*(_explained_hit(place, hit, in_full=in_full) for place, hit in enumerate(found.hits, 1)))


def _explained_hit(place: int, hit: Hit, *, in_full: bool) -> RenderableType:
    title = Text.assemble(
        score_text(hit.relevance_score),
        f"  {plain(hit.summary)}\n",
        (f"{hit.id} · {plain(hit.memory_type)} · {day(hit.occurred_at)}", "dim"),
    )
    whole = Group(title, explanation(hit.explanation, in_full=in_full)) if hit.explanation else title
    return Padding(pairs({f"{place}.": whole}), (0, 0, 1, 0), expand=False)


MOST_LINES = 7  # of an explanation, beside its score


def explanation(why: Explanation, *, in_full: bool = False) -> Group:
    """Show what makes up a score: the inputs that count most, or the parts and factors of a formula. `in_full`: also
    the sum that selects candidates, and every input."""
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    for justify in ("left", "left", "right", "right"):
        grid.add_column(no_wrap=True, justify=justify)
    parts = [part for part in why.parts if part.contribution] if in_full or not why.evidence else []
    for part in parts:
        weighted = f"{part.value:.2f} × {part.weight:+.2f} ="
        grid.add_row(part.name, _bar(part, "cyan"), weighted, f"{part.contribution:+.3f}")
    if parts:
        grid.add_row("", "", "sum", f"{sum(part.contribution for part in parts):+.3f}", style="dim")
    felt = [part for part in why.evidence if part.contribution]
    for part in felt if in_full else felt[:MOST_LINES]:
        grid.add_row(part.name, "", f"{part.value:.2f} →", f"{part.contribution:+.3f}")
    for factor in why.factors:
        grid.add_row(factor.name, _bar(factor, "magenta"), "×", f"{factor.contribution:.3f}")
    grid.add_row("", "", "score", f"{why.score:.3f}", style="bold")
    if why.matched_terms:
        words = f"words in common: {' · '.join(why.matched_terms)}"
    else:
        by_words = any(part.value for part in why.parts if part.name in ("keyword", "text"))
        words = f"no word in common: {'found by synonyms' if by_words else 'found by meaning alone'}"
    return Group(grid, Text(plain(words), style="dim"))


def _bar(part: ScorePart, colour: str) -> Text:
    filled = round(BAR * min(max(part.value, 0.0), 1.0))
    return Text.assemble(("█" * filled, colour), ("░" * (BAR - filled), "dim"))


def memory_card(memory: MemoryItem) -> Group:
    grid = pairs({name: value for name, value in _fields(memory).items() if value})
    return Group(Padding(Text(plain(memory.dated_text)), (0, 0, 1, 0)), grid)


def _expires(memory: MemoryItem) -> str:
    if memory.expires_at is None:
        return ""
    over = memory.status == "active" and memory.expires_at <= utc_now()
    hint = f", so no search finds it; to keep it: jiyi update {memory.id} --expires-at none" if over else ""
    return when(memory.expires_at) + hint


def _fields(memory: MemoryItem) -> dict[str, str]:
    key = memory.memory_key
    return {
        "id": memory.id,
        "memory_key": key if key != memory.id else "",
        "summary": memory.summary if memory.summary != memory.content else "",
        "type": f"{memory.memory_type} ({memory.layer})",
        "version": f"{memory.version}, {memory.status}",
        "occurred": when(memory.occurred_at),
        "valid": f"{when(memory.valid_from)} to {when(memory.valid_to)}" if memory.valid_to else "",
        "expires": _expires(memory),
        "importance": f"{memory.importance:.2f}",
        "tags": ", ".join(memory.tags),
        "keywords": ", ".join(memory.keywords),
        "user": memory.user_id,
        "session": memory.session_id or "",
        "agent": memory.agent_id or "",
        "group": memory.group_id or "",
        "data": _value(memory.data) if memory.data else "",
        "metadata": _value(memory.metadata) if memory.metadata else "",
        "source": ", ".join((memory.source, *memory.source_ids)),
        "created": when(memory.created_at),
        "updated": when(memory.updated_at) if memory.updated_at != memory.created_at else "",
    }


def _value(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def timeline(changes: Sequence[Revision], *, with_times: bool = True) -> Table:
    grid = pairs(style="cyan")
    for change in changes:
        moment = f"{when(change.changed_at)}  " if with_times else ""
        reason = f" — {plain(change.reason)}" if change.reason else ""
        head = Text.assemble((moment, "dim"), (change.action, "bold"), (f" by {plain(change.actor)}", "dim"), reason)
        grid.add_row(f"● v{change.version}", Group(head, *_differences(change)))
    return grid


def _differences(change: Revision) -> list[RenderableType]:
    if change.before is None:
        return [Text(plain(str(change.after.get("content", ""))))]
    before: Mapping[str, JsonValue] = change.before
    lines: list[RenderableType] = []
    for name, now in change.after.items():
        was = before.get(name)
        follows = name == "summary" and now == change.after.get("content")  # a short text is its own summary
        if was == now or follows:
            continue
        lines.append(Text.assemble((f"{name}  ", "dim"), (plain(_shown(was)), "red")))
        lines.append(Text.assemble((" " * len(name) + "→ ", "dim"), (plain(_shown(now)), "green")))
    return lines


def _shown(value: JsonValue) -> str:
    return "—" if value in (None, "", [], {}) else _value(value)


def stats_table(held: Stats, user: str | None) -> Table:
    covered = held.coverage
    rows: dict[str, RenderableType] = {
        "store": held.store,
        "size": f"{held.size_bytes / 1e6:.1f} MB, schema {held.schema_version}",
        "users" if user is None else "user": str(held.users) if user is None else user,
        "memories": f"{held.memories:,}",
        "embedder": held.embedder,
        "reader": held.reader or "none",
        "keywords": f"{covered.with_keywords:,} of {counted(covered.memories, 'memory', 'memories')}",
        "vectors": f"{covered.embedded:,} of {counted(covered.memories, 'memory', 'memories')}",
    }
    if covered.outdated:
        rows["to reindex"] = f"{counted(covered.outdated, 'memory', 'memories')} of an earlier version: `jiyi maintain`"
    return pairs(rows)


STEPS = " ▁▂▃▄▅▆▇█"
PARTS = " ▏▎▍▌▋▊▉█"
WIDTH = 30


def spark(numbers: Sequence[int]) -> str:
    """Draw a column of eighths for each number; any number above 0 is visible."""
    most = max(numbers, default=0)
    if not most:
        return STEPS[0] * len(numbers)
    return "".join(STEPS[-(-number * 8 // most)] for number in numbers)


def bar(number: int, most: int, width: int = WIDTH) -> str:
    eighths = max(round(number * width * 8 / most), 1) if number and most else 0
    return PARTS[8] * (eighths // 8) + (PARTS[eighths % 8] if eighths % 8 else "")


def metrics_plot(measured: Metrics) -> Table:
    grid = pairs()
    most = max(measured.by_type.values(), default=0)
    for at, (name, number) in enumerate(measured.by_type.items()):
        line = Text.assemble((f"{number:>9,} ", ""), (f"{bar(number, most):<{WIDTH}} ", "cyan"), plain(name))
        grid.add_row("by type" if at == 0 else "", line)
    if measured.archived:
        grid.add_row("archived", f"{measured.archived:>9,}")
    if measured.average_importance is not None:
        spread = Text.assemble("0 ", (spark(measured.by_importance), "cyan"), " 1")
        grid.add_row("importance", spread.append(f"   {measured.average_importance:.2f} on average"))
    days = _days(measured)
    if sum(days):
        grid.add_row("added", Text.assemble((spark(days), "cyan"), f"   {sum(days):,} in {len(days)} days"))
    weeks = _weeks(measured)
    for at, (monday, number) in enumerate(weeks.items()):
        line = Text.assemble((f"{number:>9,} ", ""), (f"{bar(number, max(weeks.values())):<{WIDTH}} ", "cyan"))
        grid.add_row("by week" if at == 0 else "", line.append(f"from {monday.isoformat()}"))
    if measured.relevance is not None:
        spread = Text.assemble("0 ", (spark(measured.best_relevance), "cyan"), " 1")
        searches = counted(sum(measured.best_relevance), "search", "searches")
        grid.add_row("relevance", spread.append(f"   {measured.relevance:.2f} on average, best hits of {searches}"))
    return grid


def _weeks(measured: Metrics) -> dict[date, int]:
    """Return the number of added memories by the Monday of their week; the first week may lack days."""
    found: Counter[date] = Counter()
    for written, number in measured.added_by_day.items():
        day = date.fromisoformat(written)
        found[day - timedelta(days=day.weekday())] += number
    if not found:
        return {}
    first, last = min(found), max(found)
    mondays = [first + timedelta(days=at) for at in range(0, (last - first).days + 1, 7)]
    return {monday: found[monday] for monday in mondays}


def _days(measured: Metrics) -> list[int]:
    """Return the number of added memories for each of the last 30 days."""
    if not measured.added_by_day:
        return []
    last = date.fromisoformat(max(measured.added_by_day))
    days = [(last - timedelta(days=back)).isoformat() for back in reversed(range(30))]
    return [measured.added_by_day.get(day, 0) for day in days]


MARKS = {"archive": "-", "restore": "+", "change": "~"}
COLOURS = {"archive": "red", "restore": "green", "change": "yellow"}


def compress_plan(plan: CompressPlan) -> RenderableType:
    if not plan.bundles:
        return "no memories are old and rarely used enough to be compressed"
    head = f"{counted(plan.before, 'memory', 'memories')} would become {plan.after:,}; nothing was changed"
    return Group(head, *map(_bundle, plan.bundles))


def compressed(done: CompressReport) -> RenderableType:
    if not done.bundles:
        return "nothing was compressed"
    head = f"{counted(done.archived, 'memory', 'memories')} became {done.made:,}"
    return Group(head, *map(_bundle, done.bundles))


def _bundle(bundle: Bundle) -> Table:
    grid = pairs(title=" · ".join(filter(None, (bundle.memory_type, plain(bundle.subject or ""), bundle.made_by))))
    for member in bundle.members:
        grid.add_row(Text("-", "red"), Text(plain(member.text), "dim"))
    for text in bundle.texts:
        grid.add_row(Text("+", "green"), plain(text))
    if bundle.note:
        grid.add_row(Text("!", "yellow"), plain(bundle.note))
    return grid


def undo_plan(plan: UndoPlan) -> RenderableType:
    if not plan.steps:
        return Group("there is nothing to undo", *map(plain, plan.left))
    return Group(f"{plain(plan.why)}; nothing was changed", _steps(plan.steps), *map(plain, plan.left))


def undone(done: UndoReport) -> RenderableType:
    if not done.steps:
        return "nothing was undone"
    return Group(f"changes of {counted(len(done.steps), 'memory', 'memories')} undone", _steps(done.steps))


def _steps(steps: Sequence[UndoStep]) -> Table:
    grid = pairs()
    for step in steps:
        said = Text.assemble((plain(step.text), ""), (f"  {step.memory_id}", "dim"))
        if step.does == "change":
            told = ", ".join(f"{name}: {value}" for name, value in step.values.items() if name != "data")
            said.append(f"\n→ {plain(told)}")
        grid.add_row(Text(MARKS[step.does], COLOURS[step.does]), said)
    return grid

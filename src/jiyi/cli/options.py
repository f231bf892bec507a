"""Options and arguments of the commands."""

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InvalidInput

LOCAL = "ISO 8601; without a zone: local time"


def parse_time(value: str) -> datetime:
    """Parse a time in ISO 8601. Without a zone it is local time; a date is its midnight."""
    try:
        return datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{value!r} is not a time in ISO 8601, such as 2025-05-07 or 2025-05-07T18:30+08:00"
        ) from None


def parse_object(option: str, value: str | None) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        found = json.loads(value)
    except ValueError as error:
        raise InvalidInput(option, f"is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInput(option, 'must be a JSON object, such as {"source": "email"}')
    return found


def read_file(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(option, f"{path} cannot be read: {error.strerror}") from error


def decode(name: str, data: bytes) -> str:
    """Decode the text of a file; an empty one is an error."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(name, f"is not UTF-8 (byte {error.start:,}): convert it first") from None
    if not text.strip():
        raise InvalidInput(name, "is empty")
    return text


def _option(*names: str, metavar: str | None = None, help: str) -> Any:  # noqa: A002 - Typer's name
    return typer.Option(*names, metavar=metavar, help=help)


def _belongs(name: str, help: str) -> Any:  # noqa: A002
    return typer.Option(name, metavar="NAME", help=help, rich_help_panel="Belongs to")


def _time(name: str, help: str) -> Any:  # noqa: A002
    return typer.Option(name, metavar="TIME", parser=parse_time, help=f"{help} ({LOCAL}).")


MEMORY_ID = "The memory's id, a unique beginning of it, or its memory_key."
MemoryId = Annotated[str, typer.Argument(metavar="ID", help=MEMORY_ID)]
TargetId = Annotated[str, typer.Argument(metavar="OTHER_ID", help="The other memory.")]
RELATION = "supports, contradicts or refines."
RelationName = Annotated[str, typer.Argument(metavar="RELATION", help=RELATION)]
Strength = Annotated[float, _option("--strength", metavar="0..1", help="How strong the relation is.")]
Session = Annotated[str | None, _belongs("--session", "A session.")]
Agent = Annotated[str | None, _belongs("--agent", "An agent.")]
Group = Annotated[str | None, _belongs("--group", "A group.")]

Query = Annotated[str, typer.Argument(metavar="QUERY", help="A question or keywords.")]
Mode = Annotated[
    str | None, _option("--mode", "-m", metavar="MODE", help="hybrid (words and meaning), keyword or semantic.")
]
Hits = Annotated[int, _option("--limit", "-n", metavar="N", help="At most this many hits.")]
PageSize = Annotated[int, _option("--limit", "-n", metavar="N", help="Memories on a page.")]
Cursor = Annotated[str | None, _option("--cursor", metavar="CURSOR", help="Cursor of the next page.")]
Explain = Annotated[bool, _option("--explain", "-x", help="Explain every score.")]
InFull = Annotated[bool, _option("--all", help="With --explain: whatever was weighed, not the main points only.")]
MinScore = Annotated[float, _option("--min-score", metavar="0..1", help="Minimum score.")]
MIN_TRUST = "Minimum trust."
MinTrust = Annotated[float | None, _option("--min-trust", metavar="0..1", help=MIN_TRUST)]
CONDITIONS = """Only memories with this metadata, such as '{"project": "apollo", "rating": {"gte": 4}}'."""
Conditions = Annotated[str | None, _option("--metadata", metavar="JSON", help=CONDITIONS)]
KEYWORDS = "A keyword, instead of those found in QUERY; repeatable."
Keywords = Annotated[list[str] | None, _option("--keyword", metavar="WORD", help=KEYWORDS)]
Types = Annotated[list[str] | None, _option("--type", metavar="TYPE", help="Only memories of this type; repeatable.")]
LAYERS = "Only this layer: episodic, semantic or procedural; repeatable."
Layers = Annotated[list[str] | None, _option("--layer", metavar="LAYER", help=LAYERS)]
ANY_TAGS = "Only memories with this tag; repeatable: any of them."
AnyTags = Annotated[list[str] | None, _option("--tag", metavar="TAG", help=ANY_TAGS)]
Since = Annotated[datetime | None, _time("--since", "Only what happened at that time or later")]
Until = Annotated[datetime | None, _time("--until", "Only what happened before that time; a date means its midnight")]
Days = Annotated[int | None, _option("--days", metavar="N", help="Only the last N days.")]
TRUST = "Trust in the source; default 1."
Trust = Annotated[float, _option("--trust", metavar="0..1", help=TRUST)]
USER_NAMES = "A name of the user in messages, besides the user's id; repeatable."
UserNames = Annotated[list[str] | None, _option("--user-name", metavar="NAME", help=USER_NAMES)]
AsOf = Annotated[datetime | None, _time("--as-of", "Only what was valid at that time")]
AskedAt = Annotated[datetime | None, _time("--asked-at", "The time that counts as now")]
Status = Annotated[str, _option("--status", metavar="STATUS", help="active or archived.")]

Text = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT", help="A statement, or several in quotes.", show_default=False)
]
FILE = "Messages or candidates (.json, .jsonl), or text with a statement per line."
File = Annotated[Path | None, _option("--file", "-f", metavar="FILE", help=FILE)]
FORMAT = "text, json or jsonl. Default: by the file's name; stdin: text."
Format = Annotated[str | None, _option("--format", metavar="FORMAT", help=FORMAT)]
Type = Annotated[str | None, _option("--type", metavar="TYPE", help="fact, preference, task, skill, … or your own.")]
Importance = Annotated[float | None, _option("--importance", metavar="0..1", help="Importance.")]
Tags = Annotated[list[str] | None, _option("--tag", metavar="TAG", help="A tag; repeatable.")]
NEW_TAGS = "New tags, which replace the old ones; repeatable."
NewTags = Annotated[list[str] | None, _option("--tag", metavar="TAG", help=NEW_TAGS)]
NoTags = Annotated[bool, _option("--no-tags", help="Remove all tags.")]
Metadata = Annotated[str | None, _option("--metadata", metavar="JSON", help="A JSON object kept with the memory.")]
OccurredAt = Annotated[datetime | None, _time("--occurred-at", "When it happened")]
ExpiresAt = Annotated[datetime | None, _time("--expires-at", "When it expires")]
IDEMPOTENCY_KEY = "Repeating a call with the same key returns the first receipt."
IdempotencyKey = Annotated[str | None, _option("--idempotency-key", metavar="KEY", help=IDEMPOTENCY_KEY)]
ON_CONFLICT = "If a candidate's memory_key is taken: error, skip or update."
OnConflict = Annotated[str, _option("--on-conflict", metavar="WHAT", help=ON_CONFLICT)]
Content = Annotated[str | None, _option("--content", metavar="TEXT", help="The new text.")]
Summary = Annotated[str | None, _option("--summary", metavar="TEXT", help="The new summary.")]
AT_VERSION = "Change it only if it is at this version."
AtVersion = Annotated[int | None, _option("--expected-version", "--version", metavar="N", help=AT_VERSION)]
TO_VERSION = "The version to restore. Default: the previous one."
ToVersion = Annotated[int | None, _option("--to-version", "--version", metavar="N", help=TO_VERSION)]
VALID_TO = f"When it stopped being valid, or none ({LOCAL})."
ValidTo = Annotated[str | None, _option("--valid-to", metavar="TIME", help=VALID_TO)]
NEW_EXPIRY = f"When it expires, or none ({LOCAL})."
NewExpiry = Annotated[str | None, _option("--expires-at", metavar="TIME", help=NEW_EXPIRY)]
NewStatus = Annotated[str | None, _option("--status", metavar="STATUS", help="active or archived.")]
Actor = Annotated[str, _option("--actor", metavar="NAME", help="The actor, for the history.")]
Reason = Annotated[str | None, _option("--reason", metavar="TEXT", help="The reason, for the history.")]
MaybeId = Annotated[str | None, typer.Argument(metavar="ID", help=MEMORY_ID)]
FromBackup = Annotated[Path | None, _option("--from", metavar="FILE", help="A backup that replaces the store.")]
Replace = Annotated[bool, _option("--force", help="With --from: replace a store that is not empty.")]
Everything = Annotated[bool, _option("--all", help="All data of the user that --user names.")]
WITH_SOURCES = "Also delete source messages of which it quotes no part, and memories derived from them alone."
WithSources = Annotated[bool, _option("--with-sources", help=WITH_SOURCES)]
Yes = Annotated[bool, _option("--yes", "-y", help="Do not ask for confirmation.")]
Embeddings = Annotated[bool, _option("--embeddings", help="Embed all memories with the current embedder.")]
Lang = Annotated[str, _option("--lang", metavar="en|zh", help="The language of the narration.")]

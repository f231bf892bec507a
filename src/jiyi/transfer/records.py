"""The record stream of every import, the `FormatReader` protocol, and helpers to build records from foreign files."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, ValidationError

from .. import validation
from ..models import CandidateMemory, Message, invalid_input
from ..store.upkeep.export_records import Line
from .sources import Source, Values, json_values, open_text

# Reasons to skip a message.
NO_TEXT = "no text (pictures, files, tool calls)"
INSTRUCTIONS = "instructions to the assistant"
CUSTOM = "custom instructions (the newest are stored once, as memories)"
TOOLS = "tool output"
REASONING = "reasoning of the model"
BRANCH = "replaced by editing or regenerating"
TOO_LONG = f"longer than {validation.MAX_TEXT:,} characters"

SKIPPED_ROLES = {"system": INSTRUCTIONS, "developer": INSTRUCTIONS, "tool": TOOLS, "function": TOOLS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation, or a part of a long one: several in a row may have the same session."""

    session_id: str
    format: str
    title: str | None
    messages: tuple[Message, ...]
    skipped: tuple[str, ...]  # the reason for each skipped message
    repaired: int  # messages with characters that cannot be stored and were replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMemory:
    """A memory of another system, with its owner if the file names one."""

    place: str  # in the file, for error messages
    memory: CandidateMemory
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    group_id: str | None = None

    @property
    def owner(self) -> tuple[str | None, str | None, str | None, str | None]:
        return self.user_id, self.agent_id, self.session_id, self.group_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    """A message of another system, with its owner if the file names one."""

    message: Message
    metadata: dict[str, JsonValue] | None
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    group_id: str | None

    @property
    def place(self) -> tuple[Any, ...]:
        """Messages of one place are stored together."""
        return self.user_id, self.agent_id, self.session_id, self.group_id, self.metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message as a file has it, before it is checked."""

    place: str
    id: str
    text: str
    role: str
    session: str | None = None
    speaker: str | None = None
    sent_at: datetime | None


class ConversationBuilder:
    """Collects the messages of one conversation while its file is read."""

    def __init__(self, session_id: str, *, format: str, title: str | None = None) -> None:  # noqa: A002
        self.session_id = session_id
        self._format = format
        self._title = _storable(title).strip()[: validation.MAX_NAME] if title else None
        self._messages: list[Message] = []
        self._skipped: list[str] = []
        self._repaired = 0

    def __len__(self) -> int:
        return len(self._messages) + len(self._skipped)

    def add(self, turn: Turn) -> None:
        """Keep a message of a person or the assistant; skip others with the reason."""
        text = _storable(turn.text)
        reason = SKIPPED_ROLES.get(turn.role)
        if reason is None and not text.strip():
            reason = NO_TEXT
        if reason is None and len(text) > validation.MAX_TEXT:
            reason = TOO_LONG
        if reason is not None:
            self.skip(reason)
            return
        self._repaired += text != turn.text
        self._messages.append(
            Message(
                id=validation.name(f"{turn.place}.id", turn.id),
                role=validation.memory_type(f"{turn.place}.role", turn.role),
                speaker=validation.optional_name(f"{turn.place}.speaker", turn.speaker),
                text=text,
                sent_at=turn.sent_at,
            )
        )

    def skip(self, reason: str) -> None:
        self._skipped.append(reason)

    def build(self) -> Conversation:
        return Conversation(
            session_id=validation.name("session", self.session_id),
            format=self._format,
            title=self._title,
            messages=tuple(self._messages),
            skipped=tuple(self._skipped),
            repaired=self._repaired,
        )


def _storable(text: str) -> str:
    """Replace NUL and lone surrogates, which occur in exports and cannot be stored."""
    return (
        text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


class ForeignModel(BaseModel):
    """A part of a foreign file. Unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


M = TypeVar("M", bound=ForeignModel)


def validate_as(place: str, model: type[M], value: object) -> M:
    """Validate a foreign value; an error names its place."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise invalid_input(place, error) from None


TIME_FORMATS = (
    "%I:%M %p on %d %B, %Y",  # LoCoMo
    "%Y/%m/%d (%a) %H:%M",  # LongMemEval
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%Y年%m月%d日 %H:%M",
    "%Y年%m月%d日",
)
CHINESE_WEEKDAY = re.compile(r"(?<!\s)\s*(?:周|星期|礼拜)[一二三四五六日天]")
MILLISECONDS_FROM = 100_000_000_000  # as seconds, this would be the year 5138


def parse_time(written: str) -> datetime:
    """Parse a time as exports and benchmarks write it; without a zone it is UTC.

    >>> parse_time("1:56 pm on 8 May, 2023") == parse_time("2023年05月08日 周一 13:56")
    True
    """
    text = CHINESE_WEEKDAY.sub("", written.strip())
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{written!r} is out of range in UTC") from None
    except ValueError:
        pass
    for time_format in TIME_FORMATS:
        try:
            return datetime.strptime(text, time_format).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"{written!r} is not a time in ISO 8601, LoCoMo's or LongMemEval's format")


def from_timestamp(seconds: float) -> datetime:
    """Convert seconds or milliseconds since 1970.

    >>> from_timestamp(1700000000.5) == from_timestamp(1700000000500)
    True
    """
    try:
        return datetime.fromtimestamp(seconds / 1000 if abs(seconds) >= MILLISECONDS_FROM else seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{seconds!r} is not a time in seconds since 1970") from None


def _as_time(value: Any) -> Any:
    if isinstance(value, str):
        return parse_time(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return from_timestamp(value)
    return value


def _as_name(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


ForeignTime = Annotated[datetime, BeforeValidator(_as_time)]
ForeignName = Annotated[str, BeforeValidator(_as_name)]  # some files number their speakers, sessions and messages


Kind = Literal["conversations", "memories"]
Record = (
    Conversation | ImportedMemory | ImportedMessage | Line
)  # `Line`: a row of an export of Jiyi, which is restored as it was


class FormatReader(Protocol):
    """One import format."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    def matches(self, source: Source, first: Any) -> bool:
        """Return True if the file is in this format; `first` is its first JSON value, None if it is not JSON."""
        ...

    def read(self, source: Source) -> Iterator[Record]:
        """Yield the records of a file in this format."""
        ...


@dataclass(frozen=True, slots=True)
class JsonReader:
    """A reader of JSON lists and JSONL files."""

    name: str
    kind: Kind
    matches_object: Callable[[dict[str, Any]], bool]  # called with the first object of a file
    read_values: Callable[[Values, Source], Iterator[Record]]

    def matches(self, source: Source, first: Any) -> bool:
        return isinstance(first, dict) and self.matches_object(first)

    def read(self, source: Source) -> Iterator[Record]:
        with open_text(source) as stream:
            yield from self.read_values(json_values(stream, source.name), source)

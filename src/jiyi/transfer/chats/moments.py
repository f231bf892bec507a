"""Times as exports and benchmarks write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator

FORMATS = (
    "%I:%M %p on %d %B, %Y",  # LoCoMo
    "%Y/%m/%d (%a) %H:%M",  # LongMemEval
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%Y年%m月%d日 %H:%M",
    "%Y年%m月%d日",
)
CHINESE_WEEKDAY = re.compile(r"\s*(?:周|星期|礼拜)[一二三四五六日天]")
MILLISECONDS_FROM = 100_000_000_000  # as seconds, that would be the year 5138


def moment(written: str) -> datetime:
    """A time in UTC; where no zone is written, it is taken to be UTC.

    >>> moment("1:56 pm on 8 May, 2023") == moment("2023/05/08 (Mon) 13:56") == moment("2023年05月08日 周一 13:56")
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
    for form in FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"{written!r} is not a time in ISO 8601, nor one as LoCoMo or LongMemEval write it")


def since_epoch(seconds: float) -> datetime:
    """Seconds, or milliseconds, since 1970.

    >>> since_epoch(1700000000.5) == since_epoch(1700000000500)
    True
    """
    try:
        return datetime.fromtimestamp(seconds / 1000 if abs(seconds) >= MILLISECONDS_FROM else seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{seconds!r} is not a time in seconds since 1970") from None


def _moment(value: Any) -> Any:
    if isinstance(value, str):
        return moment(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return since_epoch(value)
    return value


def _written(value: Any) -> Any:
    """Some files number their speakers, sessions and messages."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Moment = Annotated[datetime, BeforeValidator(_moment)]
Name = Annotated[str, BeforeValidator(_written)]

"""Times as benchmarks write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

FORMATS = (
    "%I:%M %p on %d %B, %Y",  # LoCoMo
    "%Y/%m/%d (%a) %H:%M",  # LongMemEval
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%Y年%m月%d日 %H:%M",
    "%Y年%m月%d日",
)
CHINESE_WEEKDAY = re.compile(r"\s*(?:周|星期|礼拜)[一二三四五六日天]")


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

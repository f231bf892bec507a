"""What was worked out of a text need not be worked out again; and after a delete, none of it may be left."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

Result = TypeVar("Result")
_ALL: list[_lru_cache_wrapper[Any]] = []


def kept(most: int) -> Callable[[Callable[..., Result]], _lru_cache_wrapper[Result]]:
    """Like `functools.lru_cache`, for functions that are given what people have said."""

    def keeping(work: Callable[..., Result]) -> _lru_cache_wrapper[Result]:
        keeps = lru_cache(maxsize=most)(work)
        _ALL.append(keeps)
        return keeps

    return keeping


def forget() -> None:
    """Keep none of it any more, in this process."""
    for keeps in _ALL:
        keeps.cache_clear()

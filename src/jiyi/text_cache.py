"""Caches of results computed from user text, which a delete must be able to clear."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

Result = TypeVar("Result")
_CACHES: list[_lru_cache_wrapper[Any]] = []


def text_cache(size: int) -> Callable[[Callable[..., Result]], _lru_cache_wrapper[Result]]:
    """Return a decorator like `functools.lru_cache` whose entries `clear_text_caches` removes."""

    def decorate(function: Callable[..., Result]) -> _lru_cache_wrapper[Result]:
        cached = lru_cache(maxsize=size)(function)
        _CACHES.append(cached)
        return cached

    return decorate


def clear_text_caches() -> None:
    """Empty every text cache of this process."""
    for cached in _CACHES:
        cached.cache_clear()

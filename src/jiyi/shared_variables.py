"""Environment variables without our prefix, which other programs use too. They count in programs of Jiyi only: inside
another program they name that program's own model, and nobody has asked to send texts there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SHARED_VARIABLES: dict[str, tuple[str, str]] = {  # and the settings they set
    "LLM_PROVIDER": ("llm", "provider"),
    "LLM_MODEL": ("llm", "model"),
    "LLM_BASE_URL": ("llm", "base_url"),
    "LLM_API_KEY": ("llm", "api_key"),
    "LLM_TEMPERATURE": ("llm", "temperature"),
    "LLM_MAX_TOKENS": ("llm", "max_tokens"),
    "EMBEDDING_BASE_URL": ("embedding", "base_url"),
    "EMBEDDING_API_KEY": ("embedding", "api_key"),
    "EMBEDDING_DIMENSION": ("embedding", "dimension"),
}

_is_own_program: ContextVar[bool] = ContextVar("is_own_program", default=False)


@contextmanager
def own_program() -> Iterator[None]:
    """Run a program of Jiyi: `jiyi serve`, `jiyi worker`, and the other commands."""
    before = _is_own_program.set(True)
    try:
        yield
    finally:
        _is_own_program.reset(before)


def shared_values() -> dict[str, dict[str, str]]:
    """Return the settings that shared variables set in this program, by section."""
    found: dict[str, dict[str, str]] = {}
    for variable, (section, name) in SHARED_VARIABLES.items():
        if _is_own_program.get() and os.environ.get(variable):
            found.setdefault(section, {})[name] = os.environ[variable]
    return found

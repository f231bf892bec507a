"""Jiyi (记忆): long-term memory for AI agents. Names are loaded when they are first used, so that `import jiyi` and the
command line start quickly. `__init__.pyi` lists them, for this module and for type checkers."""

import gc
from importlib import import_module
from pkgutil import get_data
from typing import Any

__version__ = "0.1.0"

_LINES = map(str.split, (get_data(__name__, "__init__.pyi") or b"").decode().splitlines())
_HOMES = {line[-1]: line[1] for line in _LINES if line[:1] == ["from"]}
__all__ = [*sorted(_HOMES), "__version__"]  # noqa: PLE0604 - all are strings


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    collecting = gc.isenabled()
    gc.disable()  # importing allocates much and frees little: collecting would take a tenth of the time
    try:
        globals()[name] = value = getattr(import_module(_HOMES[name], __name__), name)
    finally:
        if collecting:
            gc.enable()
    return value


def __dir__() -> list[str]:
    return __all__

"""A hostile folder: a value for every setting that differs from its default, the files to put it in, and a listener
for what reaches the attacker."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from jiyi.settings import Settings, UserWishes

HostileValue = str | int | float | bool | list[str] | dict[str, dict[str, float | str]]


def hostile_values() -> Iterator[tuple[str, HostileValue]]:
    """Yield every setting by its name, such as `llm.model`, with a valid value that is not its default."""
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, BaseModel):
            for inner, inner_field in type(field.default).model_fields.items():
                yield f"{name}.{inner}", _value(inner_field)
        else:
            yield name, _value(field)


def _value(field: FieldInfo) -> HostileValue:
    kind = field.annotation
    if get_origin(kind) in (Union, UnionType):
        kind = next(part for part in get_args(kind) if part is not NoneType)
    if get_origin(kind) is Literal:
        return next(str(option) for option in get_args(kind) if option != field.default)
    if kind is bool:
        return not field.default
    if kind in (int, float):
        return _number(field, float if kind is float else int)
    if kind in (str, Path, SecretStr):
        patterns = [each.pattern for each in field.metadata if getattr(each, "pattern", None)]
        return next(text for text in ("evil", "13s") if all(re.fullmatch(pattern, text) for pattern in patterns))
    if get_origin(kind) is tuple:
        return ["evil.example"]
    if get_origin(kind) is dict:
        wishes = get_args(kind)[1] is UserWishes
        return {"mei": {"instructions": "evil"}} if wishes else {"fact": {"ttl_days": 0.001}}
    raise TypeError(f"no hostile value for a setting of type {kind}: add one here")


def _number(field: FieldInfo, kind: type[int] | type[float]) -> int | float:
    limits = {name: getattr(each, name) for each in field.metadata for name in ("le", "lt") if hasattr(each, name)}
    value = kind(field.default or 0) + 1
    top = min(limits.values(), default=None)
    return value if top is None or value <= top else kind(field.default) - kind(1 if kind is int else top / 10)


def as_toml(values: dict[str, HostileValue]) -> str:
    """Write settings as a jiyi.toml, in which JSON's values are inline ones."""

    def inline(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key} = {inline(held)}" for key, held in value.items()) + "}"
        return json.dumps(value)

    return "".join(f"{name} = {inline(value)}\n" for name, value in values.items())


def as_config_json(values: dict[str, HostileValue]) -> str:
    """Write settings as a config.json."""
    section: dict[str, Any] = {}
    for name, value in values.items():
        outer, _, inner = name.partition(".")
        if inner:
            section.setdefault(outer, {})[inner] = value
        else:
            section[outer] = value
    return json.dumps({"memory_system": section})


FILE_KINDS = {"jiyi.toml": as_toml, "config.json": as_config_json}


Tree = dict[str, bytes | str | None]


def tree(folder: Path) -> Tree:
    """Return all that is in a folder: contents of files, targets of links, None for anything else."""
    found: Tree = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


class Listener:
    """The attacker's machine: it accepts connections and keeps what they send."""

    def __init__(self, server: socket.socket) -> None:
        self.address = f"127.0.0.1:{server.getsockname()[1]}"
        self.received: list[bytes] = []
        self._server = server

    def accept(self) -> None:
        with suppress(OSError):  # it is closed at the end
            while True:
                connection, _ = self._server.accept()
                with connection, suppress(OSError):
                    connection.settimeout(0.5)
                    self.received.append(connection.recv(65536))


@contextmanager
def listener() -> Iterator[Listener]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        listening = Listener(server)
        thread = threading.Thread(target=listening.accept, daemon=True)
        thread.start()
        yield listening
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)

"""The settings in effect, each with its source. Secrets are not shown."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, JsonValue, SecretStr, TypeAdapter

from ..errors import SettingsError
from ..folder_trust import SettingsFile
from ..models import Value
from ..settings import Settings, settings_files
from ..settings_files import SHARED_VARIABLES, shared_values

HIDDEN = "***"
_JSON: TypeAdapter[Any] = TypeAdapter(Any)


class EffectiveSetting(Value):
    """A setting with its value and source: a variable, a file, `program` or `default`."""

    name: str
    value: JsonValue
    source: str


def effective_settings(settings: Settings) -> list[EffectiveSetting]:
    try:
        files = settings_files()
    except SettingsError:  # a file was changed after the server has read it
        files = []
    values = shared_values()
    shared = {
        f"{at}.{name}": variable for variable, (at, name) in SHARED_VARIABLES.items() if name in values.get(at, {})
    }
    return [
        EffectiveSetting(name=name, value=_shown(name, value), source=_source(name, value, default, shared, files))
        for name, value, default in _flat(settings)
    ]


def _flat(settings: Settings) -> Iterator[tuple[str, Any, Any]]:
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            for inner, inner_field in type(value).model_fields.items():
                yield f"{name}.{inner}", getattr(value, inner), inner_field.get_default(call_default_factory=True)
        else:
            yield name, value, field.get_default(call_default_factory=True)


def _source(name: str, value: Any, default: Any, shared: Mapping[str, str], files: Sequence[SettingsFile]) -> str:
    variable = f"JIYI_{name.replace('.', '__')}".upper()
    if variable in {one.upper() for one in os.environ}:
        return variable
    if name in shared:
        return shared[name]
    section, _, inner = name.partition(".")
    for file in files:
        held = file.settings.get(section)
        if inner in held if inner and isinstance(held, Mapping) else not inner and section in file.settings:
            return str(file.path)
    return "default" if value == default else "program"


def _shown(name: str, value: Any) -> JsonValue:
    """Return the value as JSON, without secrets and without passwords in addresses."""
    if isinstance(value, SecretStr):
        return HIDDEN
    if isinstance(value, str) and "@" in value and "://" in value:
        scheme, _, rest = value.partition("://")
        return f"{scheme}://{HIDDEN}@{rest.rpartition('@')[2]}"
    shown: JsonValue = _JSON.dump_python(value, mode="json")
    return shown

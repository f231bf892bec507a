"""The JSON schema of a tool's input, in one language, as models are given it."""

from __future__ import annotations

from typing import Any, Literal

from .inputs import ToolInput

ToolLanguage = Literal["en", "zh"]
# A strict schema may say what a value is, not which values of the kind are good; the descriptions do.
_STRICT = frozenset({"type", "description", "enum", "items", "anyOf", "const"})
_ANNOTATIONS = frozenset({"title", "zh", "default"})


def json_schema(model: type[ToolInput], language: ToolLanguage, *, strict: bool = False) -> dict[str, Any]:
    """With `strict`, every property is required (those with a default may be null) and nothing else is allowed."""
    whole = model.model_json_schema()
    properties = {name: _property(field, language, strict) for name, field in whole["properties"].items()}
    required = list(whole.get("required", []))
    if strict:
        for name in properties.keys() - set(required):
            properties[name] = _nullable(properties[name])
        required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _property(field: dict[str, Any], language: ToolLanguage, strict: bool) -> dict[str, Any]:
    described = {"description": field["zh"] if language == "zh" else field["description"]}
    shape = field
    if not strict and "anyOf" in field and "default" in field and field["default"] is None:
        # What need not be given need not be null either; a plain type is what most models read best.
        [shape] = [kind for kind in field["anyOf"] if kind != {"type": "null"}]
    cleaned = _clean(shape, strict)
    if not strict and field.get("default") is not None:
        cleaned["default"] = field["default"]
    return {**cleaned, **described}


def _clean(shape: dict[str, Any], strict: bool) -> dict[str, Any]:
    kept = {name: value for name, value in shape.items() if (name in _STRICT if strict else name not in _ANNOTATIONS)}
    if "items" in kept:
        kept["items"] = _clean(kept["items"], strict)
    if "anyOf" in kept:
        kept["anyOf"] = [_clean(kind, strict) for kind in kept["anyOf"]]
    return kept


def _nullable(field: dict[str, Any]) -> dict[str, Any]:
    if {"type": "null"} in field.get("anyOf", ()):
        return field
    shape = {name: value for name, value in field.items() if name != "description"}
    return {"anyOf": [shape, {"type": "null"}], "description": field["description"]}

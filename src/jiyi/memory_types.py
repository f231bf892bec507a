"""Types of memories, their layers, and their names in other systems."""

from typing import Literal

Layer = Literal["episodic", "semantic", "procedural"]

# Types are open: one that is not listed belongs to the semantic layer.
LAYERS: dict[str, Layer] = {
    "message": "episodic",
    "episode": "episodic",
    "event": "episodic",
    "task": "episodic",
    "behavior": "episodic",
    "command_output": "episodic",
    "file": "episodic",
    "quote": "episodic",
    "preference": "semantic",
    "fact": "semantic",
    "pattern": "semantic",
    "profile": "semantic",
    "skill": "procedural",
    "lesson": "procedural",
    "error_handling": "procedural",
}


def layer_of(memory_type: str) -> Layer:
    return LAYERS.get(memory_type, "semantic")


def set_layer(memory_type: str, layer: Layer) -> None:
    """Set the layer of a type that Jiyi does not know, for this process."""
    if LAYERS.setdefault(memory_type, layer) != layer:
        raise ValueError(f"the type {memory_type!r} belongs to the layer {LAYERS[memory_type]!r}")


ALIASES = {"user_preference": "preference", "episodic": "episode", "event_log": "event", "behavior_history": "behavior"}


def type_name(name: str) -> str:
    """Return our name of a type. Names in upper case mean the same as in lower case.

    >>> type_name("PROFILE"), type_name("user_preference"), type_name("Recipe")
    ('profile', 'preference', 'Recipe')
    """
    name = name.lower() if name.isupper() else name
    return ALIASES.get(name, name)

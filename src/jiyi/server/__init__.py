"""The REST server: every verb of the engine under `/v1`, keys, walls, health, figures, and a console for people.

A route checks the key, calls one verb and renders its answer; it has no rules of its own.
"""

from ..errors import MissingExtra

try:
    import fastapi  # noqa: F401 - to say which extra is missing, before anything else is imported
    import uvicorn  # noqa: F401
except ImportError as error:
    raise MissingExtra("server", str(error.name)) from error

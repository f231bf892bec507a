"""The REST server: the verbs of the engine under `/v1`, API keys, health, metrics, and the console. A route checks the
key, calls a verb and renders its result."""

from ..errors import MissingExtra

try:
    import fastapi  # noqa: F401 - fail here with the name of the missing extra
    import httptools  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise MissingExtra("server", str(error.name)) from error

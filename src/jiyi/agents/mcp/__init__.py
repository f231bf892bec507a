"""The MCP server of `jiyi mcp`: tools, resources and a prompt for one user, over stdio or HTTP."""

from ...errors import MissingExtra

try:
    import mcp  # noqa: F401 - checks that it is installed
except ImportError as error:
    raise MissingExtra("mcp", "mcp") from error

"""The MCP server of `jiyi mcp`: tools, resources and a prompt for one user, over stdio or HTTP."""

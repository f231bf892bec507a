"""The MCP server: `jiyi mcp`, over stdio or HTTP. It offers the tools, and memories as resources, for one user."""

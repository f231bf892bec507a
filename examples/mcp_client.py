"""The MCP server as a client sees it: started over stdio, asked for its tools, used, and asked for its resources.

No model is needed: the calls that one would make are written down. A client with a model (Claude, Cursor, …) is
configured as docs/integrations/mcp.md shows.

    pip install -e '.[mcp]'
    python examples/mcp_client.py [FILE]
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters

JIYI = "from jiyi.cli import main; main()"  # the command `jiyi`, whatever the PATH


async def main(file: Path) -> None:
    words = ["-c", JIYI, "mcp", "--store", str(file), "--user", "mei"]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with Client(server) as client:
        print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools))
        for name, arguments in (
            ("save_memory", {"content": "Mei is allergic to peanuts", "memory_type": "fact"}),
            ("save_memory", {"content": "猫叫豆豆，三岁了"}),
            ("search_memories", {"query": "any food allergies?", "limit": 1}),
        ):
            result = await client.call_tool(name, arguments)
            print(f"\n{name} {arguments}")
            print(*(content.text for content in result.content if content.type == "text"), sep="\n")
        for content in (await client.read_resource("jiyi://profile")).contents:
            print("\njiyi://profile", getattr(content, "text", ""), sep="\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "mcp.db"))

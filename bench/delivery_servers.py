"""Paths from a memory to a model through servers and other processes. The key may only read, so nothing is stored."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import openai

from jiyi import Memory
from jiyi.testing import ScriptedModel

from .delivery import USER, DeliveryPath, Unavailable
from .serving import proxy_of, server_of

ROOT = Path(__file__).parents[1]
COMMAND = Path(sys.executable).with_name("jiyi")
SDK = ROOT / "sdk" / "typescript"
PATHS: dict[str, DeliveryPath] = {}


def path_of(name: str) -> Callable[[DeliveryPath], DeliveryPath]:
    def register(path: DeliveryPath) -> DeliveryPath:
        PATHS[name] = path
        return path

    return register


async def reading_key(memory: Memory) -> str:
    return (await memory.keys.create("delivery", scopes=["read"], user_ids=[USER])).key


PATIENT = {"JIYI_TOOLS__RECALL_TIMEOUT_S": "60"}  # what is measured is the choice of memories, not the machine


async def run(*command: object, stdin: str = "", cwd: Path | None = None, **variables: str) -> str:
    """Run a program; return its output."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=cwd,
        env={**os.environ, **PATIENT, **variables},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, problems = await process.communicate(stdin.encode())
    if process.returncode:
        raise RuntimeError(f"{command[0]} failed: {output.decode()[-2000:]}{problems.decode()[-2000:]}")
    return output.decode()


# -- the proxy ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def through_proxy(memory: Memory, count: int) -> AsyncIterator[tuple[openai.AsyncOpenAI, ScriptedModel]]:
    with ScriptedModel(["OK."] * count) as model:
        async with (
            proxy_of(memory, model.base_url, user_id=USER) as url,
            openai.AsyncOpenAI(base_url=url, api_key=await reading_key(memory)) as client,
        ):
            yield client, model


@path_of("proxy: chat")
async def by_chat(memory: Memory, requests: Sequence[str]) -> list[str]:
    async with through_proxy(memory, len(requests)) as (client, model):
        for request in requests:
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": request}])
    return [str(body["messages"][0]["content"]) for body in model.requests]


@path_of("proxy: responses")
async def by_responses(memory: Memory, requests: Sequence[str]) -> list[str]:
    async with through_proxy(memory, len(requests)) as (client, model):
        for request in requests:
            await client.responses.create(model="m", input=request)
    return [str(body["input"]) for body in model.requests]


# -- the server --------------------------------------------------------------------------------------------------------


@path_of("jiyi context")
async def by_command(memory: Memory, requests: Sequence[str]) -> list[str]:
    async with server_of(memory) as url:
        key = await reading_key(memory)
        jiyi = (COMMAND, "context", "--store", url)
        return [await run(*jiyi, request, JIYI_CLIENT__KEY=key) for request in requests]


@path_of("hook of a coding agent")
async def by_hook(memory: Memory, requests: Sequence[str]) -> list[str]:
    async with server_of(memory) as url:
        key = await reading_key(memory)
        jiyi = (COMMAND, "context", "--hook", "--store", url)
        inputs = [
            json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "now", "prompt": request})
            for request in requests
        ]
        return [await run(*jiyi, stdin=given, JIYI_CLIENT__KEY=key) for given in inputs]


async def by_sdk(memory: Memory, requests: Sequence[str], way: str) -> list[str]:
    """Compile the TypeScript client beside `delivery.ts` in a folder of its own, and ask through it."""
    needed = [shutil.which(name) for name in ("node", "npm")]
    if None in needed or not (SDK / "node_modules").is_dir():
        raise Unavailable("Node or sdk/typescript/node_modules is not there (make sdk)")
    async with server_of(memory) as url:
        key = await reading_key(memory)
        with TemporaryDirectory() as folder:
            there = Path(folder)
            shutil.copytree(SDK / "src", there / "src", ignore=shutil.ignore_patterns("openapi.ts"))
            for file in (SDK / "package.json", SDK / "tsconfig.json", SDK / "tsconfig.test.json"):
                shutil.copy(file, there)
            (there / "test").mkdir()
            shutil.copy(ROOT / "bench" / "delivery.ts", there / "test")
            (there / "node_modules").symlink_to((SDK / "node_modules").resolve())
            document = there / "openapi.json"
            async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as web:
                document.write_bytes((await web.get(f"{url}/openapi.json")).content)
            await run("npm", "run", "--silent", "types", cwd=there, OPENAPI=str(document))
            await run(there / "node_modules/.bin/tsc", "--project", "tsconfig.test.json", cwd=there)
            given = json.dumps({"user": USER, "way": way, "requests": list(requests)})
            output = await run("node", "out/test/delivery.js", stdin=given, cwd=there, JIYI_URL=url, JIYI_KEY=key)
            return [str(one) for one in json.loads(output)]


@path_of("Vercel AI middleware")
async def by_vercel_middleware(memory: Memory, requests: Sequence[str]) -> list[str]:
    return await by_sdk(memory, requests, "middleware")


@path_of("Vercel AI tool")
async def by_vercel_tool(memory: Memory, requests: Sequence[str]) -> list[str]:
    return await by_sdk(memory, requests, "tool")


# -- a package in an environment of its own ----------------------------------------------------------------------------

STRANDS = r"""
import asyncio, json, sys
from strands import Agent
from strands.memory import MemoryManager
from strands_store import Scripted
from jiyi import Memory
from jiyi.agents.strands import JiyiMemoryStore

async def main():
    user_id, path, *requests = json.load(sys.stdin)
    given = []
    async with Memory.open(path) as memory:
        for request in requests:
            model = Scripted("search_memory", json.dumps({"query": request}))
            manager = MemoryManager(stores=[JiyiMemoryStore(memory, user_id=user_id, observe=False)])
            await Agent(model=model, memory_manager=manager, callback_handler=None).invoke_async(request)
            given.append(model.requests[0][0].replace("\\'", "'"))  # the text of a list
    print(json.dumps(given))

asyncio.run(main())
"""


@path_of("Strands")
async def by_strands(memory: Memory, requests: Sequence[str]) -> list[str]:
    tests = ROOT / "tests"
    sys.path.insert(0, str(tests))
    import foreign_packages

    try:
        package = await asyncio.to_thread(foreign_packages.strands)
    except foreign_packages.Unavailable as error:
        raise Unavailable(str(error)) from error
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        await memory.transfer.backup(copy)
        path = os.pathsep.join((str(package), str(ROOT / "src"), str(tests), os.environ.get("PYTHONPATH", "")))
        given = json.dumps([USER, str(copy), *requests])
        return [str(one) for one in json.loads(await run(sys.executable, "-c", STRANDS, stdin=given, PYTHONPATH=path))]

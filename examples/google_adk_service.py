"""Google ADK's memory service over Jiyi: a session goes in, a later one finds it. No model is needed for that.

pip install -e '.[google-adk]'
python examples/google_adk_service.py [FILE]
"""

import asyncio
import sys
import warnings

warnings.filterwarnings("ignore")  # ADK warns about its own experimental parts

from google.adk.events.event import Event  # noqa: E402
from google.adk.sessions import InMemorySessionService  # noqa: E402
from google.genai import types  # noqa: E402

from jiyi import Memory  # noqa: E402
from jiyi.agents.google_adk import JiyiMemoryService  # noqa: E402


async def main() -> None:
    async with Memory.open(sys.argv[1] if len(sys.argv) > 1 else None) as memory:
        service, sessions = JiyiMemoryService(memory), InMemorySessionService()
        session = await sessions.create_session(app_name="app", user_id="mei")
        for text in ("I'm allergic to peanuts.", "My cat is called Doudou."):
            said = types.Content(role="user", parts=[types.Part(text=text)])
            await sessions.append_event(session, Event(author="user", content=said))
        await service.add_session_to_memory(session)
        found = await service.search_memory(app_name="app", user_id="mei", query="What is my cat called?")
        print(f"{len(found.memories)} memories:")
        for entry in found.memories:
            print("-", entry.content.parts[0].text)


asyncio.run(main())

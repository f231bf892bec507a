"""A program with mem0's Python client of any version. Takes the address of a server, a key and a user; prints JSON."""

import json
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")
import mem0  # noqa: E402


def results(answer: Any) -> Any:
    return answer["results"] if isinstance(answer, dict) else answer


host, key, user = sys.argv[1:]
is_new = not mem0.__version__.startswith(("0.", "1."))  # filters name the user
client: Any = mem0.MemoryClient(api_key=key, host=host)
owner: dict[str, Any] = {"user_id": user}
said = [{"role": "user", "content": "I'm allergic to peanuts."}, {"role": "assistant", "content": "Noted."}]
call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
client.add([call, *said], **owner, **({} if is_new else {"async_mode": False}))
filters: dict[str, Any] = {"filters": {"AND": [owner]}, **({} if is_new else {"version": "v2"})}
found = results(client.search("What am I allergic to?", **filters))
listed = results(client.get_all(**filters))
by_user = [listed, found] if is_new else [client.get_all(**owner), client.search("peanuts", **owner)]
pages = client.get_all(**filters, page=1, page_size=1)
first = listed[0]["id"]
client.update(first, text="我对花生和芝麻过敏。")
report = {
    "found": [memory["memory"] for memory in found],
    "listed": [memory["memory"] for memory in listed],
    "byUser": [[memory["memory"] for memory in results(answer)] for answer in by_user],
    "pages": len(results(pages)),
    "updated": client.get(first)["memory"],
    "history": len(client.history(first)),
    "users": [user["name"] for user in results(client.users())],
    "deleted": client.delete(first)["message"],
    "all": client.delete_all(**owner)["message"],
}
print(json.dumps(report))

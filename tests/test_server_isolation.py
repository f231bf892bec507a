"""No key reaches what it is not for, and cannot even tell whether it is there. The cases are made from the routes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from jiyi import Memory
from jiyi.keys import key_id_of
from jiyi.server.app import make_app, requirement_of, routes_of
from jiyi.testing import WordEmbedder
from rest import Running, running
from support import each_case

ALL = ("read", "write", "delete", "admin")
CANARY = "kanarienvogel 金丝雀"  # in everything of the user whom the keys are not for


def all_routes() -> list[APIRoute]:
    app: Any = make_app(Memory.open("unused.db", embedder=WordEmbedder()), host="127.0.0.1", keyless=True)[0]
    while not hasattr(app, "routes"):
        app = getattr(app, "_app", None) or app.app
    return routes_of(app)


ROUTES = [(method, route) for route in all_routes() for method in sorted(route.methods or ()) if requirement_of(route)]
NAMES = [f"{method} {route.path}" for method, route in ROUTES]

# What a request needs to be one that would succeed. `{…}` in a body stands for an id of the other user.
BODIES: dict[str, Any] = {
    "POST /v1/memories": {"text": "likes tea"},
    "PATCH /v1/memories/{memory_id}": {"importance": 0.1},
    "POST /v1/memories/{memory_id}/restore": {},
    "POST /v1/search": {"query": "what sings", "explain": True},
    "POST /v1/context": {"query": "what sings"},
    "POST /v1/recall": {"said": "what sings"},
    "POST /v1/keywords/expand": {"keywords": ["sings"]},
    "POST /v1/synonyms": {"pairs": [{"keyword": "a", "synonym": "b"}]},
    "POST /v1/turns": {"user_text": "likes tea"},
    "POST /v1/sessions/end": {"session_id": "s1"},
    "POST /v1/summaries": {"summary": "tea"},
    "POST /v1/skills": {"name": "tea", "workflow": ["boil"]},
    "POST /v1/retrieve": {"query": "what sings"},
    "POST /v1/fetch": {"memory_ids": ["{memory_id}", "{memory_key}"]},
    "POST /v1/memorize": {"new_raw_data_list": [{"text": "likes tea"}]},
    "POST /v1/undo": {"memory_id": "{memory_id}"},
    "POST /v1/undo/plan": {"memory_id": "{memory_id}"},
    "POST /v1/keys": {"name": "x", "scopes": ["read"], "user_ids": ["mei"]},
}
QUERIES: dict[str, dict[str, str]] = {
    "DELETE /v1/memories": {"all": "true"},
    "DELETE /v1/synonyms": {"keyword": "sings"},
    "POST /v1/imports": {"filename": "x.json"},
}
RAW = {"POST /v1/imports": b'[{"role": "user", "content": "likes tea"}]'}
SHUT = ("all users, withdrawn", "made up", "none")  # kinds of keys that open nothing
NOBODYS = {"GET /v1/whoami"}  # about the key itself


@dataclass(frozen=True)
class Setup:
    server: Running
    theirs: dict[str, str]  # ids of the other user's things, by the name of the parameter
    clients: dict[str, httpx.Client]  # one for each kind of key


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    generous = {"burst": 100_000, "requests_per_minute": 100_000}
    with running(tmp_path_factory.mktemp("isolation") / "memory.db", server=generous) as server:
        owner = server.key("lin", scopes=ALL)
        with server.client(owner) as lin:
            said = {"messages": [{"text": CANARY, "speaker": CANARY}], "session_id": CANARY, "group_id": CANARY}
            receipt = lin.post("/v1/memories", json=said).json()
            candidate = {
                "candidates": [{"content": f"the {CANARY} sings", "memory_key": "lins-bird"}],
                "tags": [CANARY],
            }
            kept = lin.post("/v1/memories", json=candidate).json()["memories"][0]
            lin.post("/v1/synonyms", json={"pairs": [{"keyword": "sings", "synonym": "kanarienvogel"}]})
            lin.post("/v1/search", json={"query": f"what sings like a {CANARY}"})
            chat = json.dumps([{"role": "user", "content": CANARY}]).encode()
            upload = lin.post("/v1/imports", params={"filename": "kanarienvogel.json"}, content=chat).json()
        theirs = {
            "memory_id": kept["id"],
            "memory_key": "lins-bird",
            "job_id": receipt["id"],
            "import_id": upload["id"],
            "key_id": str(key_id_of(owner)),
        }
        keys = {
            "one user": server.key("mei", scopes=ALL),
            "several users": server.key("mei", "ann", scopes=ALL),
            "one user, read only": server.key("mei", scopes=["read"]),
            "all users, withdrawn": server.key(scopes=ALL),
            "made up": f"jiyi_{'0' * 26}_{'A' * 43}",
            "none": None,
        }
        server.do(server.memory.keys.revoke(key_id_of(str(keys["all users, withdrawn"]))))
        with ExitStack() as open_clients:
            clients = {kind: open_clients.enter_context(server.client(key)) for kind, key in keys.items()}
            yield Setup(server, theirs, clients)


def ask(web: httpx.Client, name: str, ids: dict[str, str], **query: str) -> tuple[int, str]:
    """The status and the text of an answer; what differs from call to call is taken out."""
    method, path = name.split(" ")
    address = re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], path)
    body = json.loads(re.sub(r'"\{(\w+)\}"', lambda found: json.dumps(ids[found[1]]), json.dumps(BODIES.get(name))))
    sent: dict[str, Any] = {"content": RAW[name]} if name in RAW else {} if body is None else {"json": body}
    with web.stream(method, address, params={**QUERIES.get(name, {}), **query}, **sent) as answer:
        text = answer.read().decode()
    for value in ids.values():
        text = text.replace(value, "…")
    return answer.status_code, re.sub(r'("request_id":)"[^"]*"', r"\1…", text)


def like(ids: dict[str, str]) -> dict[str, str]:
    """Ids of the same form that nobody has."""
    return {name: "zzzzz" + value[5:] if name == "memory_key" else "0" * 25 + "1" for name, value in ids.items()}


@each_case("name", NAMES)
def test_a_foreign_id_is_answered_like_one_that_is_not_there(setup: Setup, name: str) -> None:
    """Ids of another user's things, in the address or in the body, with the caller's own user."""
    for kind, web in setup.clients.items():
        query = {"user_id": "mei"} if kind == "several users" and name not in NOBODYS else {}
        foreign = ask(web, name, setup.theirs, **query)
        assert "kanarienvogel" not in foreign[1], kind
        if re.search(r"\{\w+\}", f"{name} {BODIES.get(name)}"):  # an id of theirs was among what was sent
            assert foreign == ask(web, name, like(setup.theirs), **query), kind
        if kind in SHUT:
            assert foreign[0] == 401, kind


@each_case("name", [name for name in NAMES if name not in NOBODYS])
def test_a_foreign_user_is_answered_like_one_who_is_not_there(setup: Setup, name: str) -> None:
    """The other user's id as `user_id`, with everything else right."""
    for kind, web in setup.clients.items():
        foreign = ask(web, name, setup.theirs, user_id="lin")
        nobody = ask(web, name, setup.theirs, user_id="nix")
        assert foreign[0] == nobody[0], kind
        if kind in SHUT:
            assert foreign[0] == 401, kind
        elif _about_a_user(name):
            assert foreign[0] in (403, 404), kind
            assert foreign[1].replace("lin", "nix") == nobody[1], kind


def _about_a_user(name: str) -> bool:
    """Whether a route takes a `user_id` at all; those that do not are about the key or about everybody."""
    route = next(route for found, (_, route) in zip(NAMES, ROUTES, strict=True) if found == name)
    asking = (route.dependant, *route.dependant.dependencies)
    return any(param.name == "user_id" for needed in asking for param in needed.query_params)


def test_afterwards_all_of_the_other_user_is_as_it_was(setup: Setup) -> None:
    with setup.server.client(setup.server.key("lin", scopes=ALL)) as lin:
        kept = lin.get(f"/v1/memories/{setup.theirs['memory_id']}").json()
        assert kept["version"] == 1 and kept["importance"] == 0.5 and CANARY in kept["content"]
        everything = {"include_total": True, "memory_types": ["message", "fact"]}
        assert lin.get("/v1/memories", params=everything).json()["total"] == 3
        assert "kanarienvogel" in lin.get("/v1/synonyms").text
        assert lin.get(f"/v1/imports/{setup.theirs['import_id']}").json()["state"] == "done"


def test_every_route_but_health_and_pages_has_a_gate() -> None:
    """A route that forgot to ask who is there would stand open."""
    gated = {route.path for _, route in ROUTES}
    assert {route.path for route in all_routes()} - gated == {"/livez", "/readyz"}
    assert {*BODIES, *QUERIES} <= {*NAMES}
    assert len(NAMES) > 40

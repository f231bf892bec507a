"""The server keeps to its own OpenAPI document, whatever is sent, with a key, with a wrong one and with none."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jiyi import Memory
from jiyi.server.app import make_app
from jiyi.testing import WordEmbedder
from rest import Running, running
from support import LONG

EXAMPLES = 120 if LONG else 4  # for each route; there are about fifty
PARTS = 4  # of the routes, for several processes


@cache
def document() -> dict[str, Any]:
    app: Any = make_app(Memory.open("unused.db", embedder=WordEmbedder()), host="127.0.0.1", keyless=True)[0]
    while not hasattr(app, "openapi"):
        app = getattr(app, "_app", None) or app.app
    found: dict[str, Any] = app.openapi()
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    generous = {"burst": 1_000_000, "requests_per_minute": 1_000_000}
    with running(tmp_path_factory.mktemp("schema") / "memory.db", server=generous) as server:
        yield server


@pytest.fixture(scope="module")
def keys(server: Running) -> dict[str, str | None]:
    valid = server.key("fuzz", scopes=["read", "write", "delete", "admin"])
    return {"valid": valid, "wrong": valid[:-1] + ("A" if valid[-1] != "A" else "B"), "none": None}


def modes(operation: Any) -> list[Any]:
    """What fits the document, and what does not; where nothing can be sent, nothing can be wrong."""
    from schemathesis import GenerationMode

    takes = operation.body or operation.query or operation.path_parameters or operation.headers
    return [GenerationMode.POSITIVE, GenerationMode.NEGATIVE] if takes else [GenerationMode.POSITIVE]


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_is_sent(part: int, server: Running, keys: dict[str, str | None]) -> None:
    import schemathesis  # a large package

    operations = [found.ok() for found in schemathesis.openapi.from_dict(document()).get_all_operations()]
    assert len(operations) > 40
    for operation in operations[part::PARTS]:
        send_anything(operation, server, keys)


def send_anything(operation: Any, server: Running, keys: dict[str, str | None]) -> None:
    from schemathesis import checks
    from schemathesis.specs.openapi import checks as openapi_checks

    checked = [
        checks.not_a_server_error,
        openapi_checks.status_code_conformance,
        openapi_checks.content_type_conformance,
        openapi_checks.response_schema_conformance,
    ]
    sent = st.one_of(operation.as_strategy(generation_mode=mode) for mode in modes(operation))

    @given(case=sent, kind=st.sampled_from(["valid", "valid", "valid", "wrong", "none"]))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=not LONG,
        database=None,
    )
    def run(case: Any, kind: str) -> None:
        headers = {name: value for name, value in (case.headers or {}).items() if name.lower() != "authorization"}
        case.headers = headers | ({} if keys[kind] is None else {"Authorization": f"Bearer {keys[kind]}"})
        answer = case.call(base_url=server.url, timeout=60)
        case.validate_response(answer, checks=checked)
        if kind != "valid" and operation.path.startswith(("/v1", "/metrics")):
            assert answer.status_code == 401, "what needs a key was answered without one"

    run()


def test_the_document_is_served_to_everybody(server: Running) -> None:
    with server.client() as web:
        assert web.get("/openapi.json").json() == document()


def test_the_document_has_an_example_for_every_body() -> None:
    schemas = document()["components"]["schemas"]
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is not None:
                name = content["schema"]["$ref"].rpartition("/")[2]
                assert schemas[name]["examples"], f"{method} {path}"
            assert operation["summary"] and "default" in operation["responses"]
            assert ("security" in operation) == path.startswith(("/v1", "/metrics")), path


def test_the_examples_are_accepted(server: Running, keys: dict[str, str | None]) -> None:
    schemas = document()["components"]["schemas"]
    with server.client(keys["valid"], params={"user_id": "fuzz"}) as web:
        for path, methods in document()["paths"].items():
            content = methods.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json")
            if content is None or "{" in path:
                continue
            body = schemas[content["schema"]["$ref"].rpartition("/")[2]]["examples"][0]
            for name in ("user_id", "user_id_list", "user_ids"):
                if name in body:
                    body = body | {name: "fuzz" if name == "user_id" else ["fuzz"]}
            answer: httpx.Response = web.post(path, json=body)
            names_memories = "memory_ids" in body or any("memory_id" in one for one in body.get("changes", ()))
            if path == "/v1/answer":  # this server has no model
                problem = answer.json()
                assert (answer.status_code, problem["code"]) == (422, "invalid_input") and "llm.model" in answer.text
                continue
            assert answer.is_success or (names_memories and answer.status_code == 404), (path, answer.text)

"""The REST server: every verb over HTTP, as the engine answers it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest

from extractors import SpelledOut
from jiyi import StoreUnavailable
from jiyi.agents.recall import MAX_TOKENS
from rest import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all tests; each has a user of its own."""
    with running(tmp_path_factory.mktemp("server") / "memory.db") as server:
        yield server


@pytest.fixture
def web(server: Running) -> Iterator[httpx.Client]:
    """A client of a server without keys, as a user whom nobody else is."""
    with server.client(params={"user_id": f"user {next(NUMBERS)}"}) as client:
        yield client


NUMBERS = count()


def add(web: httpx.Client, text: str, **more: Any) -> dict[str, Any]:
    """One statement; the memory that it became."""
    answer = web.post("/v1/memories", json={"text": text, **more})
    assert answer.status_code == 201, answer.text
    return dict(answer.json()["memories"][0])


def found(web: httpx.Client, query: str, **more: Any) -> list[str]:
    answer = web.post("/v1/search", json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    return [hit["content_preview"] for hit in answer.json()["hits"]]


# -- memories ---------------------------------------------------------------------------------------------------------


def test_what_is_added_is_found_in_both_languages(web: httpx.Client) -> None:
    add(web, "我吃素，对花生过敏", tags=["diet"])
    add(web, "likes green tea", memory_type="preference", importance=0.9)
    assert found(web, "花生") == ["我吃素，对花生过敏"]
    assert found(web, "tea", memory_types=["preference"]) == ["likes green tea"]
    assert found(web, "tea", tags=["diet"]) == []
    explained = web.post("/v1/search", json={"query": "green tea", "explain": True}).json()["hits"][0]["explanation"]
    assert explained["parts"] and explained["score"] > 0


def test_a_reply_is_the_engines_own_value(server: Running, web: httpx.Client) -> None:
    kept = add(web, "likes tea")
    item = server.do(server.memory.get(kept["id"], user_id=kept["user_id"]))
    assert web.get(f"/v1/memories/{kept['id']}").json() == item.model_dump(mode="json") == kept


def test_a_conversation_and_ready_candidates(web: httpx.Client) -> None:
    chat = [{"role": "user", "content": "下周三去上海", "timestamp": "2024-05-01T08:00:00+08:00"}]
    told = web.post("/v1/memories", json={"messages": chat, "session_id": "s1"}).json()
    assert told["state"] == "indexed" and told["memories"][0]["occurred_at"] == "2024-05-01T00:00:00Z"
    source = web.get(f"/v1/memories/{told['memories'][0]['id']}/sources").json()["items"]
    assert [(one["text"], one["session_id"]) for one in source] == [("下周三去上海", "s1")]
    ready = [{"content": "runs on Tuesdays", "memory_type": "pattern", "memory_key": "run/tuesday"}]
    assert web.post("/v1/memories", json={"candidates": ready}).json()["created"] == 1
    fetched = web.post("/v1/fetch", json={"memory_ids": ["run/tuesday", "nothing"]}).json()
    assert fetched["memories"][0]["content"] == "runs on Tuesdays" and fetched["missing"] == ["nothing"]


def test_lists_go_page_by_page_and_can_be_counted(web: httpx.Client) -> None:
    for number in range(5):
        add(web, f"fact number {number}")
    first = web.get("/v1/memories", params={"limit": 2, "include_total": True}).json()
    assert first["total"] == 5 and [item["content"] for item in first["items"]] == ["fact number 4", "fact number 3"]
    rest = web.get("/v1/memories", params={"limit": 10, "cursor": first["next_cursor"]}).json()
    assert len(rest["items"]) == 3 and rest["next_cursor"] is None and rest["total"] is None


def test_a_change_names_the_version_it_was_made_for(web: httpx.Client) -> None:
    kept = add(web, "lives in Rome")
    address = f"/v1/memories/{kept['id']}"
    assert web.get(address).headers["etag"] == '"1"'
    done = web.patch(address, json={"content": "lives in Berlin", "reason": "moved"}, headers={"If-Match": '"1"'})
    assert done.status_code == 200 and done.headers["etag"] == '"2"' and done.json()["content"] == "lives in Berlin"
    late = web.patch(address, json={"content": "lives in Oslo"}, headers={"If-Match": '"1"'})
    assert late.status_code == 412 and late.json()["code"] == "version_conflict" and late.json()["version"] == 2
    nonsense = web.patch(address, json={"content": "x"}, headers={"If-Match": "W/abc"})
    assert nonsense.status_code == 412
    stale = web.post(f"{address}/restore", json={}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    undone = web.post(f"{address}/restore", json={})
    assert undone.json()["content"] == "lives in Rome" and undone.json()["version"] == 3
    history = web.get(f"{address}/history").json()["items"]
    assert [change["action"] for change in history] == ["add", "update", "restore"]
    assert history[1]["reason"] == "moved"


def test_null_takes_an_end_away_and_leaving_it_out_does_not(web: httpx.Client) -> None:
    kept = add(web, "has a cold")
    address = f"/v1/memories/{kept['id']}"
    assert web.patch(address, json={"valid_to": "2031-01-01T00:00:00Z"}).json()["valid_to"] == "2031-01-01T00:00:00Z"
    assert web.patch(address, json={"importance": 0.2}).json()["valid_to"] == "2031-01-01T00:00:00Z"
    assert web.patch(address, json={"valid_to": None}).json()["valid_to"] is None
    assert web.patch(address, json={}).status_code == 422


def test_the_timeline_shows_what_is_over(web: httpx.Client) -> None:
    old = [{"content": "lives in Rome", "valid_from": "2020-01-01T00:00:00Z", "valid_to": "2022-01-01T00:00:00Z"}]
    new = [{"content": "lives in Berlin", "valid_from": "2022-01-01T00:00:00Z"}]
    for candidates in (old, new):
        assert web.post("/v1/memories", json={"candidates": candidates}).status_code == 201

    def told(**params: str | int) -> list[str]:
        return [item["content"] for item in web.get("/v1/timeline", params=params).json()["items"]]

    assert told() == ["lives in Berlin", "lives in Rome"]
    assert told(until="2021-06-01T00:00:00Z") == ["lives in Rome"]
    assert told(since="2023-06-01T00:00:00Z") == ["lives in Berlin"]
    page = web.get("/v1/timeline", params={"limit": 1}).json()
    assert told(limit=1, cursor=page["next_cursor"]) == ["lives in Rome"]
    assert web.get("/v1/timeline", params={"cursor": "nonsense"}).status_code == 422
    listed = web.get("/v1/memories", params={"as_of": "2021-01-01T00:00:00Z"}).json()["items"]
    assert [item["content"] for item in listed] == ["lives in Rome"]


def test_deleting_one_and_everything(server: Running, web: httpx.Client) -> None:
    kept = add(web, "a secret")
    add(web, "another")
    gone = web.delete(f"/v1/memories/{kept['id']}").json()
    assert (gone["memories"], gone["messages"], gone["removed"]["memories"]) == (1, 0, 1)
    assert web.get(f"/v1/memories/{kept['id']}").status_code == 404
    assert web.delete("/v1/memories").status_code == 422
    assert web.delete("/v1/memories", params={"all": False}).status_code == 422
    assert web.delete("/v1/memories", params={"all": True}).json()["memories"] == 1
    assert web.get("/v1/memories").json()["items"] == []
    entries = web.get("/v1/audit").json()["items"][:2]
    assert [entry["action"] for entry in entries] == ["user.delete", "memory.delete"]
    assert "user " not in str(entries) and "secret" not in str(entries)


def test_a_repeated_call_with_an_idempotency_key_makes_nothing_new(web: httpx.Client) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = web.post("/v1/memories", json={"text": "likes tea"}, headers=headers)
    assert web.post("/v1/memories", json={"text": "likes tea"}, headers=headers).json() == first.json()
    other = web.post("/v1/memories", json={"text": "likes coffee"}, headers=headers)
    assert other.status_code == 409 and other.json()["code"] == "idempotency_conflict"


# -- words, agents, profile -------------------------------------------------------------------------------------------


def test_synonyms_are_taught_used_and_removed(web: httpx.Client) -> None:
    add(web, "runs kubernetes at home")
    pairs = [{"keyword": "k8s", "synonym": "kubernetes"}]
    assert web.post("/v1/synonyms", json={"pairs": pairs}).json() == {"changed": 1}
    assert found(web, "k8s", search_mode="keyword") == ["runs kubernetes at home"]
    assert web.get("/v1/synonyms").json()["items"][0]["shared"] is False
    expanded = web.post("/v1/keywords/expand", json={"keywords": ["k8s"]}).json()
    assert "kubernetes" in expanded["synonyms"] and expanded["by_word"]["k8s"]
    assert web.delete("/v1/synonyms", params={"keyword": "k8s"}).json() == {"removed": 1}
    assert web.delete("/v1/synonyms", params={"keyword": "k8s"}).status_code == 404


def test_turns_summaries_skills_and_the_end_of_a_session(web: httpx.Client) -> None:
    turn = {"user_text": "我下周三去上海", "assistant_text": "需要订酒店吗？", "session_id": "s1"}
    assert len(web.post("/v1/turns", json=turn).json()["memories"]) == 2
    assert web.post("/v1/sessions/end", json={"session_id": "s1"}).json() == {"items": []}
    assert web.post("/v1/summaries", json={"summary": "a trip", "session_id": "s1"}).status_code == 201
    skill = {"name": "research", "workflow": ["search", {"tool": "read"}]}
    assert web.post("/v1/skills", json=skill).json()["memories"][0]["memory_type"] == "skill"
    assert web.get("/v1/profile").json()["items"] == []
    add(web, "team rule", group_id="office")
    assert web.get("/v1/groups").json() == {"groups": {"office": 1}}
    assert web.post("/v1/context", json={"query": "上海", "max_tokens": 300}).json()["context"].count("上海") >= 1
    assert web.post("/v1/recall", json={"said": "上海"}).json()["max_tokens"] == MAX_TOKENS
    web.post("/v1/search", json={"query": "上海"})
    assert web.get("/v1/recalls").json()["items"][0]["query"] == "上海"


def test_what_came_from_a_session_is_taken_back(web: httpx.Client) -> None:
    add(web, "likes tea")
    add(web, "a lie", session_id="bad")
    planned = web.post("/v1/undo/plan", json={"session_id": "bad"}).json()
    assert [step["text"] for step in planned["steps"]] == ["a lie"]
    assert web.post("/v1/undo", json={"session_id": "bad"}).json()["steps"] == planned["steps"]
    assert [item["content"] for item in web.get("/v1/memories").json()["items"]] == ["likes tea"]
    assert web.post("/v1/undo", json={}).status_code == 422
    assert web.post("/v1/undo", json={"session_id": "bad", "plan": planned}).status_code == 422, "no plans from outside"
    assert web.post("/v1/compress/plan").json()["bundles"] == []
    assert web.post("/v1/compress").json()["archived"] == 0
    assert web.post("/v1/maintenance").json()["users"] == 1


# -- jobs and imports -------------------------------------------------------------------------------------------------


def test_jobs_can_be_listed_looked_at_and_followed(web: httpx.Client) -> None:
    receipt = web.post("/v1/memories", json={"text": "likes tea"}).json()
    job = web.get("/v1/jobs").json()["items"][0]
    assert job["id"] == receipt["id"] and web.get(f"/v1/jobs/{job['id']}").json() == job
    assert web.get(f"/v1/jobs/{job['id']}/receipt", params={"wait_s": 1}).json() == receipt
    assert web.post(f"/v1/jobs/{job['id']}/retry").status_code == 422
    assert web.post(f"/v1/jobs/{job['id']}/cancel").status_code == 422
    assert events(web, f"/v1/jobs/{job['id']}/events") == [("end", job)]
    assert web.get("/v1/jobs/nothing/events").status_code == 404


def test_what_takes_longer_is_accepted_followed_cancelled_and_tried_again(path: Path) -> None:
    model = SpelledOut(failures=1)
    slow = {"extraction": {"enabled": True}, "jobs": {"retry_delay_s": 60.0}}
    with running(path, extractor=model, **slow) as server, server.client() as web:
        accepted = web.post("/v1/memories", json={"messages": [{"text": "mei city = Rome"}]})
        assert accepted.status_code == 202 and accepted.json()["state"] == "accepted"
        address = accepted.headers["location"]
        for _ in range(1200):
            if web.get(address).json()["problems"]:
                break
            time.sleep(0.05)
        assert web.get(address).json()["problems"] == ["the model is out to lunch"]
        assert web.post(f"{address}/cancel").json()["state"] == "failed"
        assert web.get("/readyz").status_code == 200 and "jobs have failed" in str(web.get("/v1/health").json())
        assert web.post(f"{address}/retry").json()["state"] == "accepted"
        told = events(web, f"{address}/events")
        assert told[-1][0] == "end" and told[-1][1]["state"] == "indexed"
        assert "mei city: Rome" in [item["content"] for item in web.get(f"{address}/receipt").json()["memories"]]
        waited = web.post("/v1/memories", json={"messages": [{"text": "mei pet = cat"}], "wait": True})
        assert waited.status_code == 201
        assert 'jiyi_jobs{state="indexed"} 2' in web.get("/metrics").text


def events(web: httpx.Client, address: str) -> list[tuple[str, dict[str, Any]]]:
    """All events of a stream, until it ends."""
    with web.stream("GET", address) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        parts = [part for part in answer.read().decode().split("\n\n") if part and not part.startswith(":")]
    lines = [part.split("\n") for part in parts]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in lines]


CHAT = [
    {"role": "user", "content": f"I like tea number {day}", "timestamp": f"2024-01-0{day}T00:00:00Z"}
    for day in range(1, 9)
]
LINES = "\n".join(map(json.dumps, CHAT))


def test_a_chat_file_is_uploaded_imported_and_followed(web: httpx.Client) -> None:
    started = web.post("/v1/imports", params={"filename": "../../我的 chat.jsonl"}, content=LINES)
    assert started.status_code == 202 and started.json()["state"] in ("running", "done")
    address = started.headers["location"]
    told = events(web, f"{address}/events")
    assert told[-1][0] == "end" and told[-1][1]["state"] == "done"
    assert told[-1][1]["report"]["new"] == 8 and told[-1][1]["filename"] == "我的 chat.jsonl"
    assert web.get(address).json() == told[-1][1] == web.get("/v1/imports").json()["items"][0]
    assert found(web, "tea number 3", limit=1) == ["I like tea number 3"]
    again = web.post("/v1/imports", params={"filename": "我的 chat.jsonl"}, content=LINES)
    assert events(web, f"{again.headers['location']}/events")[-1][1]["report"]["new"] == 0


def test_a_file_that_is_no_chat_says_so_without_naming_the_servers_folders(web: httpx.Client) -> None:
    started = web.post("/v1/imports", params={"filename": "x.json"}, content=b'{"no": "chat"}')
    told = events(web, f"{started.headers['location']}/events")[-1][1]
    assert told["state"] == "failed" and told["problem"].startswith("x.json: is in no known format")
    archive = BytesIO()
    with ZipFile(archive, "w") as file:
        file.writestr("chat.jsonl", LINES)
        file.writestr("strange.json", "{}")
    started = web.post("/v1/imports", params={"filename": "x.zip"}, content=archive.getvalue())
    done = events(web, f"{started.headers['location']}/events")[-1][1]
    assert [note.partition(" is ")[0] for note in done["report"]["notes"]] == ["skipped: x.zip/strange.json"]
    assert web.post("/v1/imports", params={"filename": "x.exe"}, content=b"MZ").status_code == 422
    assert web.post("/v1/imports", params={"filename": "x.json"}, content=b"").status_code == 422


def test_an_import_goes_on_after_a_restart(path: Path) -> None:
    with running(path) as server, server.client() as web:
        import_id = web.post("/v1/imports", params={"filename": "chat.jsonl"}, content=LINES).json()["id"]
        status = server.server._shared.uploads._uploads[import_id].model_copy()
        folder = server.server._shared.uploads._spool.folder_of(import_id)
        events(web, f"/v1/imports/{import_id}/events")
        assert not (folder / "chat.jsonl").exists(), "no text stays on disk"
    assert not folder.exists(), "nothing stays on disk"
    # As a kill -9 leaves it: acknowledged, the file there, nothing done.
    folder.mkdir()
    begun = status.model_copy(update={"state": "running", "done": 0, "report": None})
    (folder / "import.json").write_text(begun.model_dump_json())
    (folder / "chat.jsonl").write_text(LINES.replace("number", "letter"))
    unfinished = folder.parent / ("0" * 26)
    unfinished.mkdir()
    (unfinished / "half.json").write_text("[{")
    with running(path) as server, server.client() as web:
        assert events(web, f"/v1/imports/{import_id}/events")[-1][1]["report"]["new"] == 8
        assert found(web, "letter 3", limit=1) == ["I like tea letter 3"]
        web.delete("/v1/memories", params={"all": True})
        assert web.get("/v1/imports").json()["items"] == []
        assert list(folder.parent.iterdir()) == [], "an upload that was not acknowledged is gone too"


def test_memories_go_out_as_a_file_and_come_in_again_for_somebody_else(server: Running, web: httpx.Client) -> None:
    add(web, "我吃素，对花生过敏", tags=["diet"])
    exported = web.get("/v1/export")
    assert exported.status_code == 200 and "attachment" in exported.headers["content-disposition"]
    assert exported.content.count(b"\n") > 1
    assert "花生" in web.get("/v1/export", params={"format": "markdown"}).text
    web.delete("/v1/memories", params={"all": True})
    back = web.post("/v1/imports", params={"filename": "m.jsonl"}, content=exported.content)
    told = events(web, f"{back.headers['location']}/events")[-1][1]
    assert told["state"] == "done" and told["memories"]["format"] == "jiyi" and told["report"] is None
    assert found(web, "花生") == ["我吃素，对花生过敏"]
    note = "# Tea\n\nGreen tea in the morning."
    with server.client(params={"user_id": "somebody else"}) as other:
        notes = other.post("/v1/imports", params={"filename": "tea.md"}, content=note.encode())
        assert events(other, f"{notes.headers['location']}/events")[-1][1]["memories"]["format"] == "markdown"
        foreign = other.post("/v1/imports", params={"filename": "m.jsonl"}, content=exported.content)
        events(other, f"{foreign.headers['location']}/events")
        assert "花生" not in other.get("/v1/memories").text, "an export is taken in for its own user only"


def test_hits_are_listed_by_group_and_restricted_to_one(web: httpx.Client) -> None:
    for group in ("team", None, "club"):
        add(web, f"tea of {group}", group_id=group)
    found = web.post("/v1/retrieve", json={"query": "tea"}).json()
    assert {name: len(ids) for name, ids in found["groups"].items()} == {"team": 1, "": 1, "club": 1}
    assert [one for ids in found["groups"].values() for one in ids] == [one["event_id"] for one in found["memories"]]
    of_one = web.post("/v1/retrieve", json={"query": "tea", "group_id": "club"}).json()
    assert [one["narrative"] for one in of_one["memories"]] == ["tea of club"]


def test_memories_are_related_with_a_strength(web: httpx.Client) -> None:
    one, other = add(web, "drinks tea every morning")["id"], add(web, "likes tea")["id"]
    place = f"/v1/memories/{one}/relations"
    given = {"target_id": other, "relation_type": "supports", "strength": 0.7}
    made = web.post(place, json=given)
    assert made.status_code == 201 and made.json().items() >= {**given, "memory_id": one}.items()
    assert web.get(f"/v1/memories/{other}/relations").json()["items"] == [made.json()]
    assert web.post(place, json={**given, "relation_type": "likes"}).status_code == 422
    assert web.post(place, json={**given, "target_id": "nothing"}).status_code == 404
    assert web.delete(place, params={"target_id": other}).json() == {"removed": 1}
    assert web.get(place).json()["items"] == []


# -- the names of MemUnit systems -------------------------------------------------------------------------------------


def test_retrieve_fetch_and_memorize(web: httpx.Client) -> None:
    web.params = httpx.QueryParams()
    said = {"new_raw_data_list": [{"role": "user", "content": "我下周三去上海"}], "user_id_list": ["mei", "lin"]}
    receipts = web.post("/v1/memorize", json=said).json()["receipts"]
    assert [receipt["user_id"] for receipt in receipts] == ["mei", "lin"]
    again = {**said, "history_raw_data_list": said["new_raw_data_list"], "new_raw_data_list": [{"content": "好的"}]}
    assert [receipt["created"] for receipt in web.post("/v1/memorize", json=again).json()["receipts"]] == [1, 1]
    for method in ("KEYWORD", "VECTOR", "HYBRID"):
        wanted = {"user_id": "mei", "query": "上海", "retrieve_method": method, "top_k": 1}
        told = web.post("/v1/retrieve", json=wanted).json()
        assert told["memories"][0]["narrative"] == "我下周三去上海" and len(told["scores"]) == 1
        assert told["original_data"][0]["text"] == "我下周三去上海" and told["importance_scores"]
    wanted = {"user_id": "mei", "query": "去上海出差", "radius": 0.999}
    found = {
        method: web.post("/v1/retrieve", json={**wanted, "retrieve_method": method}).json()["memories"]
        for method in ("KEYWORD", "VECTOR", "HYBRID")
    }
    assert found["KEYWORD"] and found["HYBRID"], "words find it, however similar it is"
    assert not found["VECTOR"]
    differing = web.post("/v1/retrieve", params={"user_id": "lin"}, json={"user_id": "mei", "query": "上海"})
    assert differing.status_code == 422


# -- the server itself ------------------------------------------------------------------------------------------------


def test_health_figures_and_users(server: Running, web: httpx.Client) -> None:
    add(web, "likes tea")
    assert web.get("/livez").json() == {"status": "ok"}
    ready = web.get("/readyz")
    assert ready.status_code == 200 and {check["name"] for check in ready.json()["checks"]} >= {"store", "jobs"}
    assert web.params["user_id"] in web.get("/v1/users").json()["users"]
    assert web.get("/v1/stats").json()["memories"] == 1
    figures = web.get("/v1/metrics").json()
    assert figures["memory"]["memories"] >= 1 and figures["minutes"][-1]["adds"] >= 1
    assert figures["requests"]["total"] >= 4 and figures["requests"]["errors"] == 0
    text = web.get("/metrics").text
    assert 'jiyi_http_requests_total{method="POST",route="/v1/memories",status="201"} ' in text
    assert 'jiyi_memories{type="fact"} ' in text
    assert web.get("/v1/health").json()["ready"] is True


def test_a_failed_job_of_one_user_is_reported_and_takes_nobody_out_of_service(
    server: Running, web: httpx.Client
) -> None:
    from sqlalchemy import update

    from jiyi.models import utc_now
    from jiyi.store.schema.tables import JobRow

    receipt = web.post("/v1/memories", json={"text": "likes tea"}).json()

    def change(**values: Any) -> None:
        def work(session: Any) -> None:
            session.execute(update(JobRow).where(JobRow.id == receipt["id"]).values(values))

        server.do(server.memory._engine.store.database.write([], work))

    change(state="failed", updated_at=utc_now())
    ready = web.get("/readyz")
    failing = [check for check in ready.json()["checks"] if not check["ok"]]
    assert ready.status_code == 200 and [check["name"] for check in failing] == ["jobs"]
    assert "failed" not in failing[0]["problem"] and not failing[0]["required"], "numbers of all users need a key"
    assert "1 jobs have failed" in str(web.get("/v1/health").json())
    assert 'jiyi_jobs{state="failed"} 1' in web.get("/metrics").text
    long_ago = utc_now().replace(year=2020)
    change(state="accepted", not_before=long_ago)
    assert web.get("/readyz").status_code == 200 and "no worker runs" in str(web.get("/v1/health").json())
    change(state="indexed", not_before=None)


def test_without_its_store_it_is_unready_says_why_and_logs_each_change_once(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(path) as server, server.client() as web:
        jobs = server.memory._engine.store.jobs

        async def gone(now: object) -> None:
            raise StoreUnavailable("the database at /secret/place does not answer")

        for _ in range(2):
            with monkeypatch.context() as broken:
                broken.setattr(jobs, "counts", gone)
                for _ in range(3):
                    ready = web.get("/readyz")
                    (store,) = [check for check in ready.json()["checks"] if check["name"] == "store"]
                    assert ready.status_code == 503 and store["error"] == "StoreUnavailable"
                    assert "database is unavailable" in store["problem"] and "secret" not in ready.text
            for _ in range(3):
                assert web.get("/readyz").status_code == 200
    told = [record.getMessage() for record in caplog.records if record.name == "jiyi.health"]
    assert len(told) == 4 and "/secret/place" in told[0] and told[1] == "health: store works again"


def test_a_failing_embedder_is_reported_and_words_still_answer(path: Path) -> None:
    from jiyi.testing import FailingEmbedder

    with running(path, embedder=FailingEmbedder()) as server, server.client() as web:
        assert web.post("/v1/memories", json={"text": "likes tea"}).json()["state"] == "extracted"
        assert web.post("/v1/search", json={"query": "tea"}).json()["degraded"] != []
        gone = web.post("/v1/search", json={"query": "tea", "search_mode": "semantic"})
        assert gone.status_code == 503 and gone.headers["retry-after"] and gone.json()["code"] == "unavailable"
        ready = web.get("/readyz")
        assert (
            ready.status_code == 200
            and {"embedder": False}.items() <= {check["name"]: check["ok"] for check in ready.json()["checks"]}.items()
        )
        assert web.get("/livez").status_code == 200


def test_large_replies_are_packed_if_asked_for(web: httpx.Client) -> None:
    for number in range(20):
        add(web, f"fact number {number}")
    packed = web.get("/v1/memories", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip" and len(packed.json()["items"]) == 20
    assert "content-encoding" not in web.get("/v1/memories", headers={"Accept-Encoding": "identity"}).headers


def test_what_was_accepted_is_finished_when_the_server_stops(path: Path) -> None:
    with running(path) as server, server.client() as web:
        add(web, "likes tea")
        server.server.should_exit = True
        time.sleep(0.3)
    with running(path) as server, server.client() as web:
        assert found(web, "tea") == ["likes tea"]


def test_it_works_on_postgresql_too(database: str, tmp_path: Path) -> None:
    with running(database, server={"upload_dir": tmp_path}) as server:
        key = server.key("mei")
        with server.client(key) as web:
            kept = add(web, "我吃素，对花生过敏")
            assert found(web, "花生") == ["我吃素，对花生过敏"]
            address = f"/v1/memories/{kept['id']}"
            assert web.patch(address, json={"importance": 1}, headers={"If-Match": '"1"'}).status_code == 200
            assert web.get(f"{address}/sources").json() == {"items": []}
            assert web.get("/v1/timeline").json()["items"][0]["importance"] == 1
            assert web.delete(address).status_code == 200
            assert web.get("/readyz").status_code == 200
        assert server.do(server.memory.keys.audit())[0].action == "memory.delete"

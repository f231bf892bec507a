"""Embedders: by name, over the network, with bad replies, and after a change of model."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from jiyi import EmbeddingError, EmbeddingModelChanged, Memory, MissingExtra, SettingsError, embed
from jiyi.embed import BuiltinEmbedder, embed_documents, embed_query, resolve, validated
from jiyi.embed import builtin as module
from jiyi.embed.builtin import SentenceEncoder
from jiyi.settings import Settings, load_settings
from jiyi.testing import FailingEmbedder, WordEmbedder
from support import Place, contents, dump

# -- by name --------------------------------------------------------------------------------------------------------


def test_the_default_is_the_built_in_one() -> None:
    assert isinstance(resolve(load_settings()), BuiltinEmbedder)


@pytest.mark.parametrize(
    "name", ["", "nonsense", "builtin:large", "openai", "openai:", "sentence-transformers", "OpenAI:x", ":x"]
)
def test_an_unknown_name_is_refused_with_those_that_exist(name: str) -> None:
    with pytest.raises(SettingsError, match=r"builtin, openai:MODEL or sentence-transformers:MODEL"):
        resolve(load_settings(embedder=name))


def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'jiyi\[sentence-transformers\]'"):
        resolve(load_settings(embedder="sentence-transformers:BAAI/bge-m3"))


def test_a_folder_does_not_replace_a_local_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library prefers a folder of the model's name, which a cloned repository may have, and runs code from it."""
    loaded: list[str] = []
    library = ModuleType("sentence_transformers")
    library.SentenceTransformer = loaded.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    for model, folder in (("BAAI/bge-m3", "BAAI/bge-m3"), ("small", "small"), ("tiny", "sentence-transformers/tiny")):
        loaded.clear()
        resolve(load_settings(embedder=f"sentence-transformers:{model}"))
        Path(folder).mkdir(parents=True)
        with pytest.raises(EmbeddingError, match=rf"the current folder has its own {folder}, .* \./{folder} "):
            resolve(load_settings(embedder=f"sentence-transformers:{model}"))
        mine = [f"./{folder}", str(Path(folder).absolute())]
        for path in mine:
            resolve(load_settings(embedder=f"sentence-transformers:{path}"))
        assert loaded == [model, *mine]


def test_a_missing_key_is_named() -> None:
    with pytest.raises(SettingsError, match="EMBEDDING_API_KEY or LLM_API_KEY"):
        resolve(load_settings(embedder="openai:text-embedding-3-small"))


def test_a_model_may_have_a_colon_in_its_name() -> None:
    embedder = resolve(load_settings(embedder="openai:nomic-embed-text:v1.5", llm={"api_key": "k"}))
    assert embedder.id == "openai:nomic-embed-text:v1.5"


def test_another_dimension_is_another_model() -> None:
    settings = load_settings(embedder="openai:m", llm={"api_key": "k"}, embedding={"dimension": 256})
    assert resolve(settings).id == "openai:m@256"


# -- the built-in one -----------------------------------------------------------------------------------------------


async def test_the_built_in_one_is_the_same_for_one_and_for_many(builtin: BuiltinEmbedder) -> None:
    texts = ["我喜欢喝咖啡", "likes tea", "", "🧠", "x" * 5000, "很长" * 3000]
    together = await embed_documents(builtin, texts)
    assert together.shape == (6, 512)
    for text, vector in zip(texts, together, strict=True):
        assert np.allclose(await embed_query(builtin, text), vector, atol=1e-4)


async def test_the_built_in_one_keeps_the_order_of_short_and_long_texts(builtin: BuiltinEmbedder) -> None:
    long = ["我住在杭州，养了一只猫。" * 200, "She sails on Sundays. " * 100]
    texts = ["a cat", long[0], "一只猫", long[1], "tea"]
    vectors = await builtin.embed_documents(texts)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(vector, (await builtin.embed_documents([text]))[0], atol=1e-5)
    np.testing.assert_allclose(await builtin.embed_documents(long), vectors[[1, 3]], atol=1e-5)


async def test_a_text_that_stands_there_twice_is_embedded_once() -> None:
    class Counting(WordEmbedder):
        asked: tuple[str, ...] = ()

        async def embed_documents(self, texts: Sequence[str]) -> Any:
            self.asked = tuple(texts)
            return await super().embed_documents(texts)

    embedder = Counting(16)
    vectors = await embed_documents(embedder, ["tea", "a cat", "tea", "红茶", "a cat"])
    assert embedder.asked == ("tea", "a cat", "红茶")
    np.testing.assert_array_equal(vectors[[0, 1]], vectors[[2, 4]])
    np.testing.assert_array_equal(
        vectors, await embed_documents(WordEmbedder(16), ["tea", "a cat", "tea", "红茶", "a cat"])
    )


async def test_the_built_in_one_puts_both_languages_into_one_space(builtin: BuiltinEmbedder) -> None:
    one, other, far = await embed_documents(builtin, ["I like to drink coffee", "我喜欢喝咖啡", "the train was late"])
    assert one @ other > 0.6 > one @ far


async def test_the_built_in_one_serves_several_tasks_at_once(builtin: BuiltinEmbedder) -> None:
    expected = await embed_query(builtin, "likes tea")
    for vector in await asyncio.gather(*(embed_query(builtin, "likes tea") for _ in range(8))):
        assert np.allclose(vector, expected, atol=1e-5)


# -- replies that cannot be right -----------------------------------------------------------------------------------

BAD_REPLIES = {
    "too few": [[1.0, 0.0]],
    "too many": [[1.0, 0.0]] * 3,
    "none": [],
    "no numbers": [[], []],
    "ragged": [[1.0, 0.0], [1.0]],
    "flat": [1.0, 0.0],
    "deep": [[[1.0]], [[1.0]]],
    "NaN": [[1.0, float("nan")], [1.0, 0.0]],
    "infinite": [[1.0, float("inf")], [1.0, 0.0]],
    "words": [["a", "b"], ["c", "d"]],
    "null": None,
    "holes": [[1.0, None], [1.0, 0.0]],
}


class Answers:
    """An embedder that answers what it is told to."""

    id = "testing:answers"

    def __init__(self, reply: Any) -> None:
        self.reply = reply

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        return self.reply

    async def embed_query(self, text: str) -> Any:
        return self.reply


@pytest.mark.parametrize("reply", BAD_REPLIES.values(), ids=BAD_REPLIES)
def test_a_bad_reply_for_documents_is_an_error(reply: Any) -> None:
    with pytest.raises(EmbeddingError, match="testing:answers"):
        validated(Answers(reply), reply, 2)


async def test_a_bad_reply_for_a_query_is_an_error_and_words_answer(place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder()) as memory:
        await memory.add("likes tea", user_id="mei")
    embedder = Answers(None)
    async with Memory.open(place, embedder=embedder) as memory:
        for reply in (None, 1.0, [], [[1.0]], [[1.0], [1.0, 2.0]], ["a"], [float("nan")]):
            embedder.reply = reply
            with pytest.raises(EmbeddingError, match="testing:answers"):
                await memory.search("tea", user_id="mei", search_mode="semantic")
            found = await memory.search("tea", user_id="mei")
            assert contents(found) == ["likes tea"], reply
            assert "testing:answers" in found.degraded[0], reply


async def test_a_bad_reply_keeps_every_memory_of_the_batch(place: Place) -> None:
    """A short answer must not skip some memories; none gets a vector, all are kept and named."""
    async with Memory.open(place, embedder=Answers([[1.0, 0.0]])) as memory:
        receipt = await memory.add(["likes tea", "plays chess"], user_id="mei")
        assert (receipt.state, receipt.created) == ("extracted", 2)
        assert "(1, 2)" in receipt.problems[0]
    assert dump(place)["embeddings"] == []


class Tensor:
    """A reply that cannot be converted, such as a tensor of torch that requires a gradient."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("call detach() first")


class Failing(Answers):
    """An embedder that ends in an unusual way: an exception, or never."""

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        return await self.embed_query("")

    async def embed_query(self, text: str) -> Any:
        if isinstance(self.reply, BaseException):
            raise self.reply
        await asyncio.sleep(3600)


@pytest.mark.parametrize(
    "embedder",
    [
        Answers(Tensor()),
        Failing(asyncio.CancelledError()),  # of a task of its own; nobody cancelled the caller
        Failing(MemoryError()),
        Failing(None),
    ],
    ids=["tensor", "cancelled", "no memory", "hangs"],
)
async def test_an_embedder_that_fails_in_an_unusual_way_costs_no_message(
    embedder: Answers, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "MAX_CALL_S", 0.2)
    monkeypatch.setattr(embed, "MAX_TEXT_S", 0.01)
    async with Memory.open(path, embedder=embedder) as memory:
        receipt = await asyncio.wait_for(memory.add("likes tea", user_id="mei"), 20)
        assert (receipt.state, receipt.created) == ("extracted", 1)
        assert "testing:answers" in receipt.problems[0]
        found = await asyncio.wait_for(memory.search("tea", user_id="mei"), 20)
        assert contents(found) == ["likes tea"] and "testing:answers" in found.degraded[0]
        health = await asyncio.wait_for(memory.health(), 20)
        assert [check.name for check in health.checks if not check.ok] == ["embedder"]


async def test_a_search_that_is_cancelled_while_it_embeds_stays_cancelled(path: Path) -> None:
    async with Memory.open(path, embedder=Failing(None)) as memory:
        search = asyncio.create_task(memory.search("tea", user_id="mei", search_mode="semantic"))
        await asyncio.sleep(0.2)
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search


def test_vectors_are_made_of_length_one_and_zero_stays_zero() -> None:
    vectors = validated(Answers(None), [[3, 4], [0, 0]], 2)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, [[0.6, 0.8], [0, 0]])


# -- over the network -----------------------------------------------------------------------------------------------


class Endpoint:
    """A server that speaks OpenAI's `/embeddings`, as well or as badly as `reply` says."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.reply: Callable[[list[str]], tuple[int, bytes, str]] = self.well
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.asked.append(question)
                endpoint.keys.append(self.headers["Authorization"])
                status, body, kind = endpoint.reply(question["input"])
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @staticmethod
    def vector(text: str) -> list[float]:
        return [float(number) for number in WordEmbedder(32)._embed(text)]

    def well(self, texts: list[str]) -> tuple[int, bytes, str]:
        """All right, though not in order: the index says which is which."""
        return self.data(
            [{"object": "embedding", "index": at, "embedding": self.vector(text)} for at, text in enumerate(texts)][
                ::-1
            ]
        )

    def data(self, rows: Any) -> tuple[int, bytes, str]:
        whole = {"object": "list", "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}, "data": rows}
        return 200, json.dumps(whole).encode(), "application/json"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture
def remote(endpoint: Endpoint) -> Settings:
    return load_settings(
        embedder="openai:m", embedding={"base_url": endpoint.url, "api_key": "secret-key", "batch_size": 3}
    )


async def test_batches_come_back_in_the_order_of_the_texts(endpoint: Endpoint, remote: Settings) -> None:
    texts = [f"fact {number}" for number in range(8)]
    vectors = await embed_documents(resolve(remote), texts)
    assert [len(question["input"]) for question in endpoint.asked] == [3, 3, 2]
    assert {question["model"] for question in endpoint.asked} == {"m"}
    assert set(endpoint.keys) == {"Bearer secret-key"}
    expected = np.array([endpoint.vector(text) for text in texts])
    assert np.allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True))


async def test_a_remote_embedder_serves_a_memory(endpoint: Endpoint, remote: Settings, place: Place) -> None:
    async with Memory.open(place, settings=remote) as memory:
        receipt = await memory.add(["likes tea", "plays chess"], user_id="mei")
        assert receipt.state == "indexed"
        assert contents(await memory.search("chess", user_id="mei", search_mode="semantic", limit=1)) == ["plays chess"]


async def test_a_server_that_answers_in_another_dimension_for_a_while_is_named(
    endpoint: Endpoint, remote: Settings, place: Place
) -> None:
    """What it said then is not kept: nobody would find it by meaning, and the receipt would say that all is well."""
    shorter = [{"index": 0, "embedding": [1.0] * 8}]
    async with Memory.open(place, settings=remote) as memory:
        await memory.add("likes tea", user_id="mei")
        endpoint.reply = lambda _: endpoint.data(shorter)
        receipt = await memory.add("plays chess", user_id="mei")
        assert receipt.state == "extracted" and "dimension 8" in receipt.problems[0]
        endpoint.reply = endpoint.well
        await memory.maintenance.reindex()
        assert contents(await memory.search("chess", user_id="mei", search_mode="semantic", limit=1)) == ["plays chess"]


async def test_the_wanted_dimension_is_asked_for(endpoint: Endpoint, remote: Settings) -> None:
    settings = load_settings(embedder="openai:m", embedding={"base_url": endpoint.url, "api_key": "k", "dimension": 32})
    await embed_query(resolve(settings), "tea")
    assert endpoint.asked[0]["dimensions"] == 32


async def test_the_llms_endpoint_and_key_serve_when_there_are_no_others(endpoint: Endpoint) -> None:
    settings = load_settings(embedder="openai:m", llm={"base_url": endpoint.url, "api_key": "llm-key"})
    await embed_query(resolve(settings), "tea")
    assert endpoint.keys == ["Bearer llm-key"]


def row(at: Any, vector: Any) -> dict[str, Any]:
    return {"object": "embedding", "index": at, "embedding": vector}


FAULTS: dict[str, Callable[[Endpoint, list[str]], tuple[int, bytes, str]]] = {
    "one missing": lambda e, texts: e.data([row(0, [1.0, 0.0])]),
    "one twice": lambda e, texts: e.data([row(0, [1.0, 0.0]), row(0, [1.0, 0.0])]),
    "one too many": lambda e, texts: e.data([row(at, [1.0, 0.0]) for at in range(3)]),
    "none": lambda e, texts: e.data([]),
    "data is null": lambda e, texts: e.data(None),
    "no data": lambda e, texts: (200, b"{}", "application/json"),
    "a list": lambda e, texts: (200, b"[]", "application/json"),
    "no index": lambda e, texts: e.data([{"embedding": [1.0, 0.0]}, {"embedding": [1.0, 0.0]}]),
    "no vector": lambda e, texts: e.data([{"index": 0}, {"index": 1}]),
    "rows are null": lambda e, texts: e.data([None, None]),
    "vectors of different length": lambda e, texts: e.data([row(0, [1.0, 0.0]), row(1, [1.0])]),
    "empty vectors": lambda e, texts: e.data([row(0, []), row(1, [])]),
    "words": lambda e, texts: e.data([row(0, ["a"]), row(1, ["b"])]),
    "NaN": lambda e, texts: e.data([row(0, [1.0, float("nan")]), row(1, [1.0, 0.0])]),
    "infinity": lambda e, texts: e.data([row(0, [1.0, float("inf")]), row(1, [1.0, 0.0])]),
    "garbage": lambda e, texts: (200, b"<html>gateway</html>", "text/html"),
    "garbage as JSON": lambda e, texts: (200, b"{not json", "application/json"),
    "nothing": lambda e, texts: (200, b"", "application/json"),
    "wrong key": lambda e, texts: (401, b'{"error": {"message": "no such key"}}', "application/json"),
    "no such model": lambda e, texts: (404, b'{"error": {"message": "no such model"}}', "application/json"),
    "too long": lambda e, texts: (400, b'{"error": {"message": "too long"}}', "application/json"),
}


async def test_a_fault_of_the_server_is_an_error_and_the_memories_are_kept(
    endpoint: Endpoint, remote: Settings, place: Place
) -> None:
    embedder = resolve(remote)
    async with Memory.open(place, settings=remote, embedder=embedder) as memory:
        for name, fault in FAULTS.items():
            endpoint.reply = functools.partial(fault, endpoint)
            with pytest.raises(EmbeddingError, match="openai:m"):
                await embed_documents(embedder, ["likes tea", "plays chess"])
            receipt = await memory.add(["likes tea", "plays chess"], user_id=name)
            assert (receipt.state, receipt.created) == ("extracted", 2), name
            assert "openai:m" in receipt.problems[0], name
            assert "secret-key" not in receipt.problems[0], name
        endpoint.reply = endpoint.well
        assert await memory.maintenance.reindex() == 2 * len(FAULTS)
        for name in FAULTS:
            found = await memory.search("chess", user_id=name, search_mode="semantic", limit=1)
            assert contents(found) == ["plays chess"], name


@pytest.mark.parametrize("status", [500, 429])
async def test_a_server_in_trouble_is_given_up_soon(endpoint: Endpoint, remote: Settings, status: int) -> None:
    endpoint.reply = lambda texts: (status, b'{"error": {"message": "in trouble"}}', "application/json")
    with pytest.raises(EmbeddingError, match="in trouble"):
        await embed_query(resolve(remote), "tea")
    assert 1 <= len(endpoint.asked) <= 4


async def test_batches_of_different_length_are_an_error(endpoint: Endpoint, remote: Settings) -> None:
    """A server that changes its model between two batches."""
    endpoint.reply = lambda texts: endpoint.data([row(at, [1.0] * len(endpoint.asked)) for at in range(len(texts))])
    with pytest.raises(EmbeddingError, match="openai:m"):
        await embed_documents(resolve(remote), [f"fact {number}" for number in range(5)])


async def test_no_server_is_an_error() -> None:
    gone = Endpoint()
    gone.close()
    settings = load_settings(embedder="openai:m", embedding={"base_url": gone.url, "api_key": "k"})
    with pytest.raises(EmbeddingError, match="openai:m"):
        await embed_query(resolve(settings), "tea")


async def test_a_server_that_never_answers_is_given_up_within_a_minute_or_so(remote: Settings) -> None:
    """The client's own default is ten minutes, and that three times."""
    client = resolve(remote)._client
    seconds = client.timeout if isinstance(client.timeout, (int, float)) else client.timeout.read
    assert seconds * (1 + client.max_retries) <= 200


# -- another model --------------------------------------------------------------------------------------------------


@pytest.fixture
async def old(place: Place) -> Path:
    """A store with memories that carry vectors of another model."""
    async with Memory.open(place, embedder=WordEmbedder(64, "old")) as memory:
        await memory.add([f"fact {number} about tea" for number in range(6)], user_id="mei")
        await memory.add("likes tea", user_id="bo")
        archived = (await memory.add("archived tea", user_id="mei")).memories[0]
        await memory.update(archived.id, user_id="mei", status="archived")
    return place


async def test_after_a_change_of_model_words_answer_and_meaning_names_the_way_out(old: Path) -> None:
    async with Memory.open(old, embedder=WordEmbedder(32, "new")) as memory:
        found = await memory.search("tea", user_id="mei")
        assert found.total_found == 6
        assert "6 of 6 memories have no vector of testing:new@32 but of testing:old@64" in found.degraded[0]
        assert "`jiyi reindex --embeddings`" in found.degraded[0]
        assert (await memory.search("tea", user_id="mei", search_mode="keyword")).degraded == ()
        with pytest.raises(EmbeddingModelChanged, match="jiyi reindex --embeddings"):
            await memory.search("tea", user_id="mei", search_mode="semantic")
        assert (await memory.search("tea", user_id="nobody", search_mode="semantic")).searched == 0


async def test_reindexing_tells_its_progress_and_repairs_all_users(old: Path) -> None:
    told: list[tuple[int, int]] = []
    async with Memory.open(old, embedder=WordEmbedder(32, "new")) as memory:
        assert await memory.maintenance.reindex(progress=lambda done, whole: told.append((done, whole))) == 7
        assert (told[0], told[-1]) == ((0, 7), (7, 7))
        for user_id in ("mei", "bo"):
            found = await memory.search("tea", user_id=user_id, search_mode="semantic")
            assert found.total_found == (await memory.count(user_id=user_id))
            assert found.degraded == ()
        coverage = (await memory.stats()).coverage
        assert (coverage.memories, coverage.embedded, coverage.models) == (7, 7, {"testing:new@32": 7})
        assert await memory.maintenance.reindex() == 0


async def test_an_archived_memory_that_comes_back_after_a_change_of_model_is_named(old: Path) -> None:
    async with Memory.open(old, embedder=WordEmbedder(32, "new")) as memory:
        await memory.maintenance.reindex()
        [archived] = (await memory.list(user_id="mei", status="archived")).items
        await memory.update(archived.id, user_id="mei", status="active")
        found = await memory.search("tea", user_id="mei")
        assert found.total_found == 7
        assert "1 of 7" in found.degraded[0]
        assert await memory.maintenance.reindex() == 1
        assert (await memory.search("tea", user_id="mei")).degraded == ()


class Halfway(FailingEmbedder):
    """Fails from the second batch on, until it is repaired."""

    def __init__(self) -> None:
        super().__init__(32, "new")
        self.failing = False
        self.batches: list[int] = []

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        self.failing = self.failing or len(self.batches) == 1
        self.batches.append(len(texts))
        return await super().embed_documents(texts)


async def test_an_interrupted_reindexing_goes_on_where_it_stopped(place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder(64, "old")) as memory:
        await memory.add([f"fact {number}" for number in range(600)], user_id="mei")
    embedder = Halfway()
    async with Memory.open(place, embedder=embedder) as memory:
        with pytest.raises(EmbeddingError, match="switched off"):
            await memory.maintenance.reindex()
        done = (await memory.stats()).coverage.embedded
        assert 0 < done < 600
        embedder.failing, embedder.batches = False, [0, 0]
        assert await memory.maintenance.reindex() == 600 - done
        assert (await memory.stats()).coverage.embedded == 600


class ShortOnly(WordEmbedder):
    """Refuses a request that holds a text beyond its length, as servers do."""

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        if any(len(text) > 1000 for text in texts):
            raise EmbeddingError(f"{self.id}: too long")
        return await super().embed_documents(texts)


async def test_one_text_that_cannot_be_embedded_does_not_hold_up_the_others(place: Place) -> None:
    async with Memory.open(place, embedder=ShortOnly()) as memory:
        await memory.add(["likes tea", "plays chess", "long " * 1000], user_id="mei")
        with suppress(EmbeddingError):
            await memory.maintenance.reindex()
        coverage = (await memory.stats()).coverage
        assert (coverage.memories, coverage.embedded) == (3, 2)


class Meanwhile(WordEmbedder):
    """Somebody else changes and deletes memories while these are embedded."""

    def __init__(self, change: Callable[[], Any]) -> None:
        super().__init__(32, "new")
        self.change: Callable[[], Any] | None = change

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        vectors = await super().embed_documents(texts)
        if self.change is not None:
            change, self.change = self.change, None
            await change()
        return vectors


async def test_what_changes_while_it_is_embedded_gets_the_vector_of_its_new_text(place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder(32, "old")) as old:
        tea, chess, _ = (await old.add(["likes tea", "plays chess", "has a cat"], user_id="mei")).memories

        async def change() -> None:
            await old.update(tea.id, user_id="mei", content="prefers water")
            await old.delete(chess.id, user_id="mei")

        async with Memory.open(place, embedder=Meanwhile(change)) as new:
            await new.maintenance.reindex()
            assert contents(await new.search("water", user_id="mei", search_mode="semantic", limit=1)) == [
                "prefers water"
            ]
            assert (
                contents(await new.search("likes tea", user_id="mei", search_mode="semantic", min_relevance_score=0.5))
                == []
            )
            coverage = (await new.stats()).coverage
            assert (coverage.memories, coverage.embedded) == (2, 2)


class SameName(WordEmbedder):
    """A server that kept the model's name when it changed the model."""

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.id = "testing:same-name"


async def test_vectors_of_another_length_under_the_same_name_are_named_too(place: Place) -> None:
    """Neither a crash nor silence: words answer, the result says so, and reindexing repairs it."""
    async with Memory.open(place, embedder=SameName(64)) as memory:
        await memory.add(["likes tea", "has a cat"], user_id="mei")
    async with Memory.open(place, embedder=SameName(32)) as memory:
        found = await memory.search("tea", user_id="mei")
        assert contents(found) == ["likes tea"]
        assert "jiyi reindex --embeddings" in found.degraded[0]
        with pytest.raises(EmbeddingModelChanged, match="jiyi reindex --embeddings"):
            await memory.search("tea", user_id="mei", search_mode="semantic")
        await memory.add("plays chess", user_id="mei")
        assert contents(await memory.search("chess", user_id="mei")) == ["plays chess"]
        await memory.maintenance.reindex()
        assert contents(await memory.search("tea", user_id="mei", search_mode="semantic", limit=1)) == ["likes tea"]


async def test_queries_of_several_tasks_are_embedded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"question {number}" for number in range(6)]
    alone = [module._encode([text])[0] for text in texts]
    batches: list[int] = []
    encode = module._encode
    monkeypatch.setattr(module, "_encode", lambda given: (batches.append(len(given)), encode(given))[1])
    builtin = BuiltinEmbedder()
    cancelled, *waiting = [asyncio.ensure_future(builtin.embed_query(text)) for text in texts]
    await asyncio.sleep(0)
    cancelled.cancel()
    assert np.allclose(await asyncio.gather(*waiting), alone[1:], atol=1e-6)
    assert batches == [len(texts)]
    assert np.array_equal(await builtin.embed_query(texts[0]), alone[0])


async def test_a_failure_is_raised_for_each_of_the_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(texts: Sequence[str]) -> None:
        raise OSError("no model")

    monkeypatch.setattr(module, "_encode", fail)
    builtin = BuiltinEmbedder()
    failed = await asyncio.gather(*(builtin.embed_query("tea") for _ in range(3)), return_exceptions=True)
    assert [str(one) for one in failed] == ["no model"] * 3


# -- the model that is part of the package ----------------------------------------------------------------------------

FROM_THE_ORIGINAL = json.loads((Path(__file__).parent / "embedder.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def encoder() -> SentenceEncoder:
    return SentenceEncoder()


@pytest.mark.parametrize("known", FROM_THE_ORIGINAL, ids=lambda known: ascii(known["text"])[:20])
def test_pieces_and_vectors_are_those_of_the_original(known: dict[str, Any], encoder: SentenceEncoder) -> None:
    """Vectors of earlier versions stay valid. `bench.embedder.compare` compares 2,000 texts with the original."""
    assert encoder.pieces(known["text"]) == known["pieces"]
    [vector] = encoder.encode([known["text"]])
    np.testing.assert_allclose(vector[: len(known["vector"])], known["vector"], atol=1e-4)


def test_half_of_a_surrogate_pair_is_read_as_a_question_mark(encoder: SentenceEncoder) -> None:
    assert encoder.pieces("what\ud83d") == encoder.pieces("what?")


def test_threads_that_embed_at_the_same_time_get_the_right_vectors(encoder: SentenceEncoder) -> None:
    texts = [known["text"] for known in FROM_THE_ORIGINAL]
    alone = encoder.encode(texts)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(encoder.encode, [[text] for text in texts * 3]))
    np.testing.assert_allclose(np.concatenate(found), np.concatenate([alone] * 3), atol=1e-5)


def test_embedding_writes_nothing_to_disk(tmp_path: Path) -> None:
    """Neither does onnxruntime, which keeps a number of the device and events to send, unless that is switched off."""
    program = (
        "from jiyi.embed.builtin import SentenceEncoder\nassert SentenceEncoder().encode(['tea']).shape == (1, 512)"
    )
    folders = {name: str(tmp_path / name) for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "TMPDIR")}
    for folder in folders.values():
        Path(folder).mkdir()
    variables = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run([sys.executable, "-B", "-c", program], env=variables | folders, check=True, timeout=60)
    assert [path for folder in folders.values() for path in Path(folder).rglob("*")] == []

"""LangGraph's store on Jiyi: it behaves as LangGraph's own, and keeps what Jiyi promises besides."""

from __future__ import annotations

import asyncio
import itertools
import operator
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

import jiyi.sync
from foreign_packages import fetched, langgraph_source, run_pytest
from jiyi import InvalidInput, Memory
from jiyi.agents import langgraph_items
from jiyi.agents.langgraph import JiyiStore
from jiyi.testing import WordEmbedder
from support import LONG

Namespace = tuple[str, ...]


@pytest.fixture
def store(path: Path) -> Iterator[JiyiStore]:
    with JiyiStore.open(path, embedder=WordEmbedder(512)) as store:
        yield store


# -- as LangGraph's own store -----------------------------------------------------------------------------------------

# One compares scores with each other to five digits, one reads an attribute that holds the arguments.
NOT_OURS = ("test_embed_with_path", "test_vector_store_initialization")


def test_the_tests_of_langgraphs_own_store_pass() -> None:
    """They are run as they are published, with our class under the name of theirs."""
    left_out = [f"--deselect=tests/test_store.py::{name}" for name in NOT_OURS]
    options = ("-c", os.devnull, "--rootdir=.", "-o", "asyncio_mode=auto", "-p", "langgraph_plugin", *left_out)
    told = run_pytest(*options, "tests/test_store.py", cwd=fetched(langgraph_source))
    assert " passed, 2 deselected" in told and "skipped" not in told


LABELS = st.sampled_from(["a", "b", "A", "memories", "用户", "a/b", "%_*", "'\";--", " ", "x" * 60, "é\n"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "K", "", " ", "键", "a.b", "../x", "\x01", "key" * 200])
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
VALUES = st.dictionaries(st.sampled_from(["n", "text", "名", "deep"]), JSON, max_size=3) | st.fixed_dictionaries(
    {"n": st.integers(0, 3)}
)
CONDITIONS = st.dictionaries(
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), st.integers(0, 3), max_size=2
)
FILTERS = st.none() | st.dictionaries(st.sampled_from(["n", "text", "deep"]), CONDITIONS | SCALARS | JSON, max_size=2)
PATHS = st.lists(LABELS | st.just("*"), max_size=3).map(tuple)
MATCHES = st.lists(st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS), max_size=2).map(tuple)
PUTS = st.tuples(NAMESPACES, KEYS, VALUES | st.none()).map(lambda given: PutOp(*given))
GETS = st.tuples(NAMESPACES, KEYS).map(lambda given: GetOp(*given))
SEARCHES = st.builds(lambda prefix, wanted: SearchOp(prefix, wanted, 1000), st.just(()) | NAMESPACES, FILTERS)
LISTS = st.builds(
    lambda conditions, depth: ListNamespacesOp(conditions, depth, 1000), MATCHES, st.sampled_from([None, 1, 2, 3])
)
OPERATIONS = st.lists(PUTS | GETS | SEARCHES | LISTS, min_size=1, max_size=12)


def plain(item: Item) -> tuple[Namespace, str, dict[str, Any]]:
    return item.namespace, item.key, item.value


def in_order(items: list[Any]) -> list[tuple[Namespace, str, dict[str, Any]]]:
    return sorted((plain(item) for item in items), key=lambda one: one[:2])


def assert_agreement(ours: BaseStore, theirs: BaseStore, op: Any) -> None:
    try:
        [expected] = theirs.batch([op])
    except TypeError:  # theirs compares None with a number
        return
    [found] = ours.batch([op])
    if isinstance(op, GetOp):
        assert (found and plain(found)) == (expected and plain(expected))
    elif isinstance(op, SearchOp):
        assert in_order(found) == in_order(expected)
        window = ours.search(op.namespace_prefix, filter=op.filter, limit=2, offset=1)
        assert [plain(item) for item in window] == [plain(item) for item in found[1:3]]
    elif isinstance(op, ListNamespacesOp):
        # Theirs goes on naming namespaces that were read once or that are empty by now.
        depth = op.max_depth or 1000
        full = {item.namespace for item in theirs.search((), limit=1000)}
        matching = {name for name in full if all(langgraph_items.matches(one, name) for one in op.match_conditions)}
        assert found == sorted({name[:depth] for name in matching})
        assert set(found) <= set(expected)
        limited = ours.batch([op._replace(limit=1, offset=1)])[0]
        assert limited == found[1:2]


@pytest.fixture(scope="module")
def shared_memory(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[jiyi.sync.Memory]:
    path = tmp_path_factory.mktemp("langgraph") / "memory.db"
    path.write_bytes(empty_store.read_bytes())
    with jiyi.sync.Memory.open(path, embedder=WordEmbedder(512)) as memory:
        yield memory


NUMBERS = itertools.count()


@settings(max_examples=500 if LONG else 25)
@given(operations=OPERATIONS)
def test_it_agrees_with_the_store_of_langgraph(shared_memory: jiyi.sync.Memory, operations: list[Any]) -> None:
    ours = JiyiStore(shared_memory, user_id=f"example {next(NUMBERS)}")
    theirs = InMemoryStore()
    for op in operations:
        assert_agreement(ours, theirs, op)
    assert_agreement(ours, theirs, SearchOp((), None, 1000, 0))
    assert_agreement(ours, theirs, ListNamespacesOp((), None, 1000))


def test_a_batch_reads_what_was_there_before_and_its_last_write_holds(store: JiyiStore) -> None:
    for one in (store, InMemoryStore()):
        one.put(("a",), "k", {"n": 0})
        results = one.batch(
            [
                PutOp(("a",), "k", {"n": 1}),
                GetOp(("a",), "k"),
                SearchOp(("a",)),
                PutOp(("a",), "k", {"n": 2}),
                PutOp(("b",), "new", {"n": 3}),
                ListNamespacesOp(),
            ]
        )
        assert [results[0], results[3], results[4]] == [None] * 3
        assert results[1].value == {"n": 0}  # type: ignore[union-attr]
        assert [item.value for item in results[2]] == [{"n": 0}]  # type: ignore[union-attr]
        assert results[5] == [("a",)]
        assert one.get(("a",), "k").value == {"n": 2}  # type: ignore[union-attr]


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("langgraph", "x"), ("a", 1), ("a\0",)])
def test_bad_namespaces_are_refused_as_everywhere_in_langgraph(store: JiyiStore, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {})
    if namespace[:1] != ("langgraph",):
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(namespace, "k", {})])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"value": {"at": datetime.now(UTC)}}, "value"),
        ({"value": {1: "a"}}, "value"),
        ({"value": {"x": float("nan")}}, "value"),
        ({"value": {"x": "\ud800"}}, "value"),
        ({"value": ["a"]}, "value"),
        ({"ttl": -1}, "ttl"),
        ({"ttl": "soon"}, "ttl"),
        ({"namespace": ("x" * 300,)}, "namespace"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_named(store: JiyiStore, arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        store.put(**{"namespace": ("a",), "key": "k", "value": {"n": 1}, **arguments})
    assert refused.value.argument == named
    assert store.search(()) == []


def test_an_unknown_operator_is_refused(store: JiyiStore) -> None:
    store.put(("a",), "k", {"n": 1})
    with pytest.raises(InvalidInput, match="like"):
        store.search(("a",), filter={"n": {"$like": 1}})


def test_tuples_come_back_as_lists(store: JiyiStore) -> None:
    store.put(("a",), "k", {"both": (1, (2, "三"))})
    assert store.get(("a",), "k").value == {"both": [1, [2, "三"]]}  # type: ignore[union-attr]


def test_a_value_that_is_changed_after_reading_changes_nothing_stored(store: JiyiStore) -> None:
    store.put(("a",), "k", {"deep": {"n": 1}})
    for item in (store.get(("a",), "k"), store.search(("a",))[0]):
        item.value["deep"]["n"] = 2  # type: ignore[union-attr]
    assert store.get(("a",), "k").value == {"deep": {"n": 1}}  # type: ignore[union-attr]


# -- finding ----------------------------------------------------------------------------------------------------------


def test_a_query_ranks_and_what_it_does_not_speak_of_comes_last_without_a_score(store: JiyiStore) -> None:
    for key, text in (("tea", "drinks green tea"), ("cat", "the cat is called 豆豆"), ("tax", "taxes are due in May")):
        store.put(("mei",), key, {"text": text})
    found = store.search(("mei",), query="what is the cat called?")
    assert found[0].key == "cat"
    assert found[0].score is not None and found[0].score > 0
    assert {item.key for item in found} == {"tea", "cat", "tax"}
    assert store.search(("mei",), query="豆豆", limit=1)[0].key == "cat"
    assert store.search(("mei",), query="cat", limit=0) == []
    assert [item.key for item in store.search(("mei",), query="cat", limit=1, offset=1)] != ["cat"]


def test_filters_hold_before_the_limit(store: JiyiStore) -> None:
    for number in range(40):
        store.put(("mei",), str(number), {"text": "likes tea " * (number + 1), "n": number})
    found = store.search(("mei",), query="tea", filter={"n": {"$gte": 38}}, limit=5)
    assert sorted(item.value["n"] for item in found) == [38, 39]


def test_items_that_are_not_indexed_are_there_but_not_found_by_their_words(store: JiyiStore) -> None:
    store.put(("mei",), "open", {"text": "likes tea"})
    store.put(("mei",), "closed", {"text": "likes tea"}, index=False)
    scored = {item.key: item.score for item in store.search(("mei",), query="tea")}
    assert scored["open"]
    assert scored["closed"] is None
    store.put(("mei",), "closed", {"text": "likes tea"})
    assert all(item.score for item in store.search(("mei",), query="tea"))


def test_only_the_named_fields_are_searched(store: JiyiStore) -> None:
    value = {"title": "apples", "chapters": [{"text": "pears"}, {"text": "plums"}], "secret": "quinces"}
    store.put(("book",), "one", value, index=["title", "chapters[*].text"])
    assert store.get(("book",), "one").value == value  # type: ignore[union-attr]
    found = {word: store.search(("book",), query=word)[0].score for word in ("apples", "plums", "quinces")}
    assert found["apples"]
    assert found["plums"]
    assert found["quinces"] is None


def test_a_store_may_name_the_fields_for_all(path: Path) -> None:
    with JiyiStore.open(path, embedder=WordEmbedder(512), fields=["text"]) as store:
        store.put(("a",), "k", {"text": "apples", "secret": "quinces"})
        assert store.search(("a",), query="apples")[0].score
        assert store.search(("a",), query="quinces")[0].score is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"text": "likes tea"}, "likes tea"),
        ({"kind": "Memory", "content": {"content": "喜欢喝茶"}}, "kind: Memory\n喜欢喝茶"),
        ({"food": "pizza", "tags": ["a", "b"], "n": 0, "none": None}, "food: pizza\ntags: a\ntags: b\nn: 0"),
        ({}, ""),
    ],
)
def test_a_value_is_rendered_as_readable_lines(value: dict[str, Any], text: str) -> None:
    assert langgraph_items.render(value, None) == text


def test_many_namespaces_under_one_prefix_are_searched_together(store: JiyiStore) -> None:
    puts = [PutOp(("team", f"user {n}"), "note", {"text": f"the word is w{n}x"}) for n in range(60)]
    store.batch([*puts, PutOp(("other",), "note", {"text": "the word is w42x"})])
    found = store.search(("team",), query="w42x", limit=3)
    assert found[0].namespace == ("team", "user 42")
    assert len(store.search(("team",), limit=100)) == 60
    assert len(store.list_namespaces(prefix=("team",), limit=1000)) == 60
    assert store.list_namespaces(max_depth=1) == [("other",), ("team",)]


def test_many_items_in_one_batch_and_page_by_page(store: JiyiStore) -> None:
    store.batch([PutOp(("big",), f"k{n}", {"n": n, "same": "the same text"}) for n in range(1200)])
    pages = [store.search(("big",), limit=500, offset=offset) for offset in (0, 500, 1000, 1500)]
    assert [len(page) for page in pages] == [500, 500, 200, 0]
    assert {item.value["n"] for page in pages for item in page} == set(range(1200))
    ranked = [store.search(("big",), query="same text", limit=700, offset=offset) for offset in (0, 700)]
    assert {item.value["n"] for page in ranked for item in page} == set(range(1200))


# -- time to live -----------------------------------------------------------------------------------------------------


def expiry(store: JiyiStore, key: str = "k") -> datetime:
    memory = store._memory
    assert isinstance(memory, jiyi.sync.Memory)
    [found] = [item for item in memory.list(user_id="default").items if item.metadata["langgraph"]["key"] == key]
    assert found.expires_at is not None
    return found.expires_at


def set_clock(monkeypatch: pytest.MonkeyPatch, minutes: float) -> None:
    """Let the adapter and the filters of the engine live some minutes later."""
    for module in ("jiyi.agents.langgraph_items", "jiyi.scope"):
        monkeypatch.setattr(f"{module}.utc_now", lambda: datetime.now(UTC) + timedelta(minutes=minutes))


def test_an_item_lives_as_long_as_its_ttl_says(store: JiyiStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(("a",), "k", {"text": "tea"}, ttl=10)
    store.put(("a",), "for ever", {"text": "tea"})
    set_clock(monkeypatch, 11)
    assert store.get(("a",), "k") is None
    assert [item.key for item in store.search(("a",))] == ["for ever"]
    assert [item.key for item in store.search(("a",), query="tea")] == ["for ever"]
    store.put(("a",), "k", {"text": "tea again"})
    assert store.get(("a",), "k").value == {"text": "tea again"}  # type: ignore[union-attr]


def test_reading_starts_the_time_anew_unless_it_is_told_not_to(
    store: JiyiStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(("a",), "k", {"text": "tea"}, ttl=10)
    first = expiry(store)
    set_clock(monkeypatch, 5)
    store.get(("a",), "k", refresh_ttl=False)
    store.search(("a",), refresh_ttl=False)
    assert expiry(store) == first
    store.get(("a",), "k")
    second = expiry(store)
    assert second - first > timedelta(minutes=4)
    set_clock(monkeypatch, 12)
    assert store.search(("a",), query="tea")[0].key == "k"
    assert expiry(store) > second
    store.get(("a",), "k")  # so soon after the last one that nothing is written
    assert len(store._memory.history(langgraph_items.memory_key_of(("a",), "k"), user_id="default")) == 3  # type: ignore[arg-type]


def test_a_default_ttl_holds_for_all(path: Path) -> None:
    with JiyiStore.open(path, embedder=WordEmbedder(), ttl={"default_ttl": 60, "refresh_on_read": False}) as store:
        store.put(("a",), "k", {"text": "tea"})
        first = expiry(store)
        assert timedelta(minutes=59) < first - datetime.now(UTC) <= timedelta(minutes=60)
        store.get(("a",), "k")
        assert expiry(store) == first


# -- what Jiyi adds ---------------------------------------------------------------------------------------------------


def test_an_overwritten_item_keeps_its_history_and_a_deleted_one_is_gone(path: Path) -> None:
    with jiyi.sync.Memory.open(path, embedder=WordEmbedder()) as memory:
        store = JiyiStore(memory, user_id="mei")
        for drink in ("tea", "coffee", "coffee"):
            store.put(("drinks",), "favourite", {"text": drink})
        first, last = store.get(("drinks",), "favourite"), memory.list(user_id="mei").items[0]
        assert first is not None
        assert first.created_at < first.updated_at
        changes = memory.history(last.id, user_id="mei")
        assert [change.after["content"] for change in changes] == ["tea", "coffee", "coffee"]
        assert {change.actor for change in changes} == {"langgraph"}
        memory.restore(last.id, user_id="mei", to_version=1)
        assert store.get(("drinks",), "favourite").value == {"text": "tea"}  # type: ignore[union-attr]
        store.delete(("drinks",), "favourite")
        store.delete(("drinks",), "favourite")
        assert store.get(("drinks",), "favourite") is None
        assert memory.list(user_id="mei").items == ()
        assert store.list_namespaces() == []


def test_items_are_memories_among_the_others_of_the_user(path: Path) -> None:
    with jiyi.sync.Memory.open(path, embedder=WordEmbedder(512)) as memory:
        memory.add("the tea is in the kitchen", user_id="mei")
        store = JiyiStore(memory, user_id="mei")
        store.put(("memories", "mei"), "1", {"text": "drinks green tea"})
        assert len(memory.search("tea", user_id="mei").hits) == 2
        assert memory.usage.groups(user_id="mei") == {"langgraph:memories.mei": 1}
        assert [item.key for item in store.search((), query="tea")] == ["1"]
        assert memory.search("tea", user_id="bo").searched == 0


def test_a_memory_that_was_archived_elsewhere_is_no_item_until_it_is_put_again(path: Path) -> None:
    with jiyi.sync.Memory.open(path, embedder=WordEmbedder()) as memory:
        store = JiyiStore(memory)
        store.put(("a",), "k", {"text": "tea"})
        memory.update(memory.list(user_id="default").items[0].id, user_id="default", status="archived")
        assert store.get(("a",), "k") is None
        assert store.search(("a",)) == []
        store.put(("a",), "k", {"text": "tea"})
        assert store.get(("a",), "k") is not None


def test_a_label_may_name_the_user_and_users_do_not_see_each_other(path: Path) -> None:
    with jiyi.sync.Memory.open(path, embedder=WordEmbedder(512)) as memory:
        store = JiyiStore(memory, user_label=1)
        for user in ("mei", "bo"):
            store.put(("memories", user), "drink", {"text": f"{user} likes tea"})
        assert memory.users() == ["bo", "mei"]
        assert [item.value["text"] for item in store.search(("memories", "mei"), query="tea")] == ["mei likes tea"]
        assert store.get(("memories", "bo"), "drink").value == {"text": "bo likes tea"}  # type: ignore[union-attr]
        assert store.list_namespaces(prefix=("memories", "bo")) == [("memories", "bo")]
        for everybody in (
            lambda: store.search(("memories",), query="tea"),
            lambda: store.search(()),
            lambda: store.put(("memories",), "drink", {}),
            store.list_namespaces,
            lambda: store.list_namespaces(prefix=("memories", "*")),
        ):
            with pytest.raises(InvalidInput, match="names no user"):
                everybody()
        with pytest.raises(InvalidInput, match="user_id"):
            JiyiStore(memory, user_label=0, user_id="mei")


def test_two_stores_on_one_file_lose_nothing(path: Path) -> None:
    with (
        JiyiStore.open(path, embedder=WordEmbedder()) as one,
        JiyiStore.open(path, embedder=WordEmbedder()) as other,
        ThreadPoolExecutor(4) as pool,
    ):
        work = [
            pool.submit(store.put, ("shared",), f"k{n}", {"by": name})
            for n in range(15)
            for name, store in (("one", one), ("other", other))
        ]
        for done in work:
            done.result()
        found = one.search(("shared",), limit=100)
        assert sorted(item.key for item in found) == sorted(f"k{n}" for n in range(15))
        assert in_order(found) == in_order(other.search(("shared",), limit=100))


async def test_both_kinds_of_callers_and_both_kinds_of_memories(path: Path) -> None:
    with JiyiStore.open(path, embedder=WordEmbedder()) as store:
        await asyncio.gather(*(store.aput(("a",), str(n), {"n": n}) for n in range(5)))
        assert len(await store.asearch(("a",))) == 5
        assert store.get(("a",), "3") == await store.aget(("a",), "3")
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        inside = JiyiStore(memory)
        await inside.adelete(("a",), "3")
        assert await inside.alist_namespaces() == [("a",)]
        assert len(await inside.asearch(("a",))) == 4
        with pytest.raises(InvalidInput, match="asynchronous"):
            inside.get(("a",), "1")


def test_a_deaf_embedder_loses_no_item(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from jiyi.testing import FailingEmbedder

    with JiyiStore.open(path, embedder=FailingEmbedder()) as store:
        store.put(("a",), "k", {"text": "tea"})
        assert store.search(("a",), query="tea")[0].key == "k"
    assert "not found by meaning yet" in caplog.text


def test_without_langgraph_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['langgraph'] = None; sys.modules['langgraph.store.base'] = None\n"
        "from jiyi import MissingExtra\n"
        "try:\n    import jiyi.agents.langgraph\n"
        "except MissingExtra as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "pip install 'jiyi[langgraph]'" in done.stdout


# -- in a graph -------------------------------------------------------------------------------------------------------


class State(TypedDict):
    said: str
    answers: Annotated[list[str], operator.add]


def assistant(state: State, *, store: BaseStore) -> dict[str, list[str]]:
    """Looks into the store, then keeps what was said: long-term memory of a user, whatever the thread."""
    user = "mei"
    known = store.search(("memories", user), query=state["said"], limit=1)
    if state["said"].endswith(("?", "？")):
        return {"answers": [known[0].value["text"] if known else "I do not know."]}
    store.put(("memories", user), str(len(state["answers"])) + state["said"], {"text": state["said"]})
    return {"answers": ["Noted."]}


def graph_with(store: BaseStore) -> Any:
    builder = StateGraph(State)
    builder.add_node("assistant", assistant)
    builder.add_edge(START, "assistant")
    builder.add_edge("assistant", END)
    return builder.compile(checkpointer=InMemorySaver(), store=store)


def test_a_graph_remembers_across_threads_and_restarts(path: Path) -> None:
    with JiyiStore.open(path, embedder=WordEmbedder(512), user_label=1) as store:
        graph = graph_with(store)
        first = {"configurable": {"thread_id": "monday"}}
        graph.invoke({"said": "My cat is called 豆豆.", "answers": []}, first)
        told = graph.invoke({"said": "I live in Berlin.", "answers": []}, first)
        assert told["answers"] == ["Noted.", "Noted."]
        asked = graph.invoke(
            {"said": "What is my cat called?", "answers": []}, {"configurable": {"thread_id": "friday"}}
        )
        assert asked["answers"] == ["My cat is called 豆豆."]
    with JiyiStore.open(path, embedder=WordEmbedder(512), user_label=1) as store:
        asked = graph_with(store).invoke(
            {"said": "豆豆？", "answers": []}, {"configurable": {"thread_id": "another program"}}
        )
        assert asked["answers"] == ["My cat is called 豆豆."]


async def test_an_asynchronous_graph_uses_it_too(path: Path) -> None:
    async def node(state: State, *, store: BaseStore) -> dict[str, list[str]]:
        await store.aput(("memories", "mei"), "said", {"text": state["said"]})
        return {"answers": [(await store.asearch(("memories", "mei"), query="cat"))[0].key]}

    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        builder = StateGraph(State)
        builder.add_node("node", node)
        builder.add_edge(START, "node")
        graph = builder.compile(checkpointer=InMemorySaver(), store=JiyiStore(memory))
        done = await graph.ainvoke({"said": "the cat", "answers": []}, {"configurable": {"thread_id": "1"}})
        assert done["answers"] == ["said"]
        assert await memory.count(user_id="default") == 1


async def test_thousands_of_concurrent_operations_are_answered(path: Path) -> None:
    """Concurrent calls share batches and a few connections, so none meets an error of the driver."""
    async with JiyiStore.open(path, embedder=WordEmbedder(), user_id="mei") as store:
        await asyncio.gather(*(store.aput(("n",), f"k{at}", {"text": f"tea {at}"}) for at in range(300)))
        found = await asyncio.gather(*(store.aget(("n",), f"k{at % 300}") for at in range(6_000)))
        assert all(item is not None and item.value == {"text": f"tea {at % 300}"} for at, item in enumerate(found))
        hits = await asyncio.gather(*(store.asearch(("n",), query="tea 7", limit=3) for _ in range(20)))
        assert all(len(items) == 3 for items in hits)
        # An operation that fails does not fail those that ran with it.
        bad = store.aput(("n",), "bad", {"text": object()})
        results = await asyncio.gather(store.aget(("n",), "k1"), bad, store.aget(("n",), "k2"), return_exceptions=True)
        assert isinstance(results[1], InvalidInput)
        assert not any(isinstance(one, BaseException) for one in (results[0], results[2]))

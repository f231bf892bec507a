"""Errors for wrong arguments and verbs that name the right ones, also for those who know mem0 or LangChain."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NoReturn, TypeVar, get_args, get_type_hints

from .scope import Filters

T = TypeVar("T")

# Names in other libraries, and what to use here.
OTHER_ARGUMENTS: Mapping[str, str] = {
    "top_k": "limit",
    "k": "limit",
    "n_results": "limit",
    "page_size": "limit",
    "page": "cursor",
    "threshold": "min_relevance_score",
    "score_threshold": "min_relevance_score",
    "run_id": "session_id",
    "thread_id": "session_id",
    "app_id": "group_id",
    "categories": "tags, or memory_types",
    "filters": f"arguments of their own: {', '.join(('user_id', *Filters.__annotations__))}",
    "filter": f"arguments of their own: {', '.join(('user_id', *Filters.__annotations__))}",
    "messages": "the first argument, without a name",
    "memory": "the first argument, without a name",
    "data": "content",
    "text": "content",
    "infer": "a statement instead of messages to keep a text as it is; messages are always kept and learned from",
    "prompt": "the setting llm.prompts, or an extractor of your own",
    "timestamp": "occurred_at",
    "expiration_date": "expires_at",
    "rerank": "the setting search.rerank",
}
OTHER_VERBS: Mapping[str, str] = {
    "get_all": "list(user_id=…)",
    "reset": "delete_all(user_id)",
    "from_config": "Memory.open(…)",
    "batch_update": "update",
    "batch_delete": "delete",
    "similarity_search": "search",
    "asearch": "search, which is asynchronous",
    "aadd": "add, which is asynchronous",
}


def explain_arguments(kind: type[T]) -> type[T]:
    """Make the verbs of a memory class explain wrong arguments, and the class wrong verbs."""
    for name, verb in list(vars(kind).items()):
        if inspect.iscoroutinefunction(verb) and not name.startswith("_"):
            setattr(kind, name, _explained(verb))
    explain_verbs(kind)
    return kind


def explain_verbs(kind: type[T]) -> type[T]:
    """Make a memory class explain wrong verbs."""

    def missing(self: object, name: str) -> NoReturn:
        hint = f"; use {OTHER_VERBS[name]}" if name in OTHER_VERBS else ""
        raise AttributeError(f"Memory has no {name}{hint}", name=name, obj=self)

    kind.__getattr__ = missing  # type: ignore[attr-defined]
    return kind


def _explained(verb: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(verb).parameters
    known = {name for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD}
    if rest := parameters.keys() - known:
        [fields] = get_args(get_type_hints(inspect.unwrap(verb))[rest.pop()])  # Unpack[…]
        known |= fields.__annotations__.keys()

    @wraps(verb)
    async def call(*args: Any, **given: Any) -> Any:
        for name in (name for name in given if name not in known):
            hint = OTHER_ARGUMENTS.get(name)
            told = f"use {hint}" if hint else f"it takes {', '.join(sorted(known - {'self'}))}"
            raise TypeError(f"Memory.{verb.__name__}() has no argument {name!r}: {told}")
        return await verb(*args, **given)

    return call

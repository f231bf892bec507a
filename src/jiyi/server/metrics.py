"""Request metrics of the server: by route, and per minute for the last hours."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import time

from pydantic import BaseModel

from ..metrics import SECONDS, Histogram, Metrics, Sample, SpreadState
from ..models import from_micros, utc_now

KEPT_MINUTES = 180
METHODS = frozenset({"GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "PUT"})
SEARCHES, ADDS = ("POST", "/v1/search"), ("POST", "/v1/memories")
RECALLS = frozenset({SEARCHES, ("POST", "/v1/recall"), ("POST", "/v1/context"), ("POST", "/v1/retrieve")})


class RouteMetrics(BaseModel):
    """Times in seconds."""

    method: str
    route: str
    count: int
    errors: int
    p50: float | None
    p95: float | None
    p99: float | None


class RequestSummary(BaseModel):
    total: int
    errors: int
    by_route: list[RouteMetrics]


class MinuteMetrics(BaseModel):
    at: datetime
    requests: int = 0
    errors: int = 0
    searches: int = 0
    adds: int = 0
    p50: float | None = None
    p95: float | None = None
    recall_p50: float | None = None
    recall_p95: float | None = None


class ServerMetrics(BaseModel):
    since: datetime
    memory: Metrics
    requests: RequestSummary
    minutes: list[MinuteMetrics]


@dataclass(slots=True)
class Minute:
    """The requests of one minute."""

    number: int  # since 1970
    errors: int = 0
    searches: int = 0
    adds: int = 0
    seconds: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    recall_seconds: Histogram = field(default_factory=lambda: Histogram(SECONDS))

    def metrics(self) -> MinuteMetrics:
        return MinuteMetrics(
            at=from_micros(self.number * 60_000_000),
            requests=self.seconds.count,
            errors=self.errors,
            searches=self.searches,
            adds=self.adds,
            p50=self.seconds.quantile(0.5),
            p95=self.seconds.quantile(0.95),
            recall_p50=self.recall_seconds.quantile(0.5),
            recall_p95=self.recall_seconds.quantile(0.95),
        )


@dataclass(slots=True)
class RequestState:
    """Counts and timings of requests, for another process."""

    since: datetime
    counts: list[tuple[tuple[str, str, int], int]]
    routes: list[tuple[tuple[str, str], SpreadState]]
    minutes: list[tuple[int, int, int, int, SpreadState, SpreadState]]


class RequestMetrics:
    """Counts and times requests. `others` are states of other workers, which are added when it is read."""

    def __init__(self) -> None:
        self._since = utc_now()
        self._routes: dict[tuple[str, str], Histogram] = {}
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self._minutes: deque[Minute] = deque(maxlen=KEPT_MINUTES)
        self.others: Sequence[RequestState] = ()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. Only 5xx count as errors."""
        key = (method if method in METHODS else "OTHER", route)
        self._counts[*key, status] += 1
        self._routes.setdefault(key, Histogram(SECONDS)).observe(seconds)
        number = int(time()) // 60
        if not self._minutes or self._minutes[-1].number != number:
            self._minutes.append(Minute(number))
        minute = self._minutes[-1]
        minute.errors += status >= 500
        minute.searches += key == SEARCHES
        minute.adds += key == ADDS
        minute.seconds.observe(seconds)
        if key in RECALLS:
            minute.recall_seconds.observe(seconds)

    def state(self) -> RequestState:
        return RequestState(
            since=self._since,
            counts=list(self._counts.items()),
            routes=[(key, (spread.counts, spread.total)) for key, spread in self._routes.items()],
            minutes=[
                (
                    one.number,
                    one.errors,
                    one.searches,
                    one.adds,
                    (one.seconds.counts, one.seconds.total),
                    (one.recall_seconds.counts, one.recall_seconds.total),
                )
                for one in self._minutes
            ],
        )

    def whole(self) -> RequestMetrics:
        """Return the metrics of all workers."""
        whole = RequestMetrics()
        minutes: dict[int, Minute] = {}
        for state in (self.state(), *self.others):
            whole._since = min(whole._since, state.since)
            whole._counts.update(dict(state.counts))
            for key, spread in state.routes:
                whole._routes.setdefault(key, Histogram(SECONDS)).add(Histogram(SECONDS, *spread))
            for number, errors, searches, adds, spread, recalls in state.minutes:
                minute = minutes.setdefault(number, Minute(number))
                minute.errors += errors
                minute.searches += searches
                minute.adds += adds
                minute.seconds.add(Histogram(SECONDS, *spread))
                minute.recall_seconds.add(Histogram(SECONDS, *recalls))
        whole._minutes.extend(minutes[number] for number in sorted(minutes))
        return whole

    def summary(self, memory: Metrics) -> ServerMetrics:
        errors: Counter[tuple[str, str]] = Counter()
        for (method, route, status), number in self._counts.items():
            errors[method, route] += number if status >= 500 else 0
        routes = [
            RouteMetrics(
                method=key[0],
                route=key[1],
                count=spread.count,
                errors=errors[key],
                p50=spread.quantile(0.5),
                p95=spread.quantile(0.95),
                p99=spread.quantile(0.99),
            )
            for key, spread in sorted(self._routes.items(), key=lambda entry: entry[0])
        ]
        return ServerMetrics(
            since=self._since,
            memory=memory,
            requests=RequestSummary(total=sum(route.count for route in routes), errors=errors.total(), by_route=routes),
            minutes=[minute.metrics() for minute in self._minutes],
        )

    def samples(self) -> Iterator[Sample]:
        for (method, route, status), number in sorted(self._counts.items()):
            labels = {"method": method, "route": route, "status": str(status)}
            yield Sample("http_requests_total", "Requests to the server.", "counter", labels, number)
        for (method, route), spread in sorted(self._routes.items(), key=lambda entry: entry[0]):
            labels = {"method": method, "route": route}
            yield Sample("http_request_seconds", "Duration of requests.", "histogram", labels, spread)

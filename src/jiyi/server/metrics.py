"""Request metrics of the server: by route, and per minute for the last hours."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from time import time

from pydantic import BaseModel

from ..metrics import SECONDS, Histogram, Metrics, Sample
from ..models import JobCounts, from_micros, utc_now

KEPT_MINUTES = 180
METHODS = frozenset({"GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "PUT"})
SEARCHES, ADDS = ("POST", "/v1/search"), ("POST", "/v1/memories")


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
    requests: int
    errors: int
    searches: int
    adds: int
    p50: float | None
    p95: float | None


class ServerMetrics(BaseModel):
    since: datetime
    memory: Metrics
    requests: RequestSummary
    minutes: list[MinuteMetrics]


@dataclass(slots=True)
class _Minute:
    number: int
    requests: int = 0
    errors: int = 0
    searches: int = 0
    adds: int = 0
    seconds: Histogram = field(default_factory=lambda: Histogram(SECONDS))


class RequestMetrics:
    def __init__(self) -> None:
        self._since = utc_now()
        self._routes: dict[tuple[str, str], Histogram] = {}
        self._counts: dict[tuple[str, str, int], int] = {}
        self._minutes: deque[_Minute] = deque(maxlen=KEPT_MINUTES)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. Only 5xx count as errors."""
        key = (method if method in METHODS else "OTHER", route)
        self._counts[*key, status] = self._counts.get((*key, status), 0) + 1
        if key not in self._routes:
            self._routes[key] = Histogram(SECONDS)
        self._routes[key].observe(seconds)
        number = int(time()) // 60
        if not self._minutes or self._minutes[-1].number != number:
            self._minutes.append(_Minute(number))
        minute = self._minutes[-1]
        minute.requests += 1
        minute.errors += status >= 500
        minute.searches += key == SEARCHES
        minute.adds += key == ADDS
        minute.seconds.observe(seconds)

    def summary(self, memory: Metrics) -> ServerMetrics:
        routes = [
            RouteMetrics(
                method=method,
                route=route,
                count=spread.count,
                errors=self._errors(method, route),
                p50=spread.quantile(0.5),
                p95=spread.quantile(0.95),
                p99=spread.quantile(0.99),
            )
            for (method, route), spread in sorted(self._routes.items())
        ]
        return ServerMetrics(
            since=self._since,
            memory=memory,
            requests=RequestSummary(
                total=sum(route.count for route in routes),
                errors=sum(route.errors for route in routes),
                by_route=routes,
            ),
            minutes=[
                MinuteMetrics(
                    at=from_micros(minute.number * 60_000_000),
                    requests=minute.requests,
                    errors=minute.errors,
                    searches=minute.searches,
                    adds=minute.adds,
                    p50=minute.seconds.quantile(0.5),
                    p95=minute.seconds.quantile(0.95),
                )
                for minute in self._minutes
            ],
        )

    def _errors(self, method: str, route: str) -> int:
        return sum(
            number
            for (one, other, status), number in self._counts.items()
            if (one, other) == (method, route) and status >= 500
        )

    def samples(self, jobs: JobCounts) -> Iterator[Sample]:
        for state, number in sorted(jobs.by_state.items()):
            yield Sample("jobs", "Jobs by state.", "gauge", {"state": state}, number)
        for (method, route, status), number in sorted(self._counts.items()):
            labels = {"method": method, "route": route, "status": str(status)}
            yield Sample("http_requests_total", "Requests to the server.", "counter", labels, number)
        for (method, route), spread in sorted(self._routes.items(), key=lambda entry: entry[0]):
            labels = {"method": method, "route": route}
            yield Sample("http_request_seconds", "Duration of requests.", "histogram", labels, spread)

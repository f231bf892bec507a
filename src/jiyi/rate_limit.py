"""Rate limits."""


class TokenBucket:
    """Allows `burst` calls at once and `per_minute` in the long run."""

    def __init__(self, burst: int, per_minute: int) -> None:
        self._burst = burst
        self._per_second = per_minute / 60
        self._left = float(burst)
        self._at: float | None = None

    def take(self, now: float) -> float:
        """Take a token and return 0, or return the seconds until one is available."""
        if self._at is not None:
            self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / self._per_second
        self._left -= 1
        return 0.0

"""The URL of a PostgreSQL database, for the driver and for people."""

from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, urlsplit, urlunsplit

from ...errors import SettingsError


@dataclass(frozen=True, slots=True)
class Address:
    """The location of the database."""

    url: str  # as the driver takes it
    shown: str  # without a password and without parameters, which can hold one

    @classmethod
    def of(cls, url: str) -> Self:
        try:
            parts = urlsplit(url)
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            raise SettingsError(
                "url: is no PostgreSQL URL; it looks like postgresql://USER@HOST:5432/DATABASE"
            ) from None
        user = f"{parts.username}@" if parts.username else ""
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        shown = urlunsplit(("postgresql", f"{user}{host}{port}", quote(parts.path), "", ""))
        return cls(url=urlunsplit(("postgresql", *parts[1:])), shown=shown)

"""Addresses of engines, with credentials in them."""

from __future__ import annotations

from urllib.parse import SplitResult, unquote, urlsplit

from ..errors import SettingsError


def several(setting: str, value: str) -> list[str]:
    """Split an address of several hosts, separated by commas; the credentials of the first are those of the others."""
    parts = [_split(setting, one.strip()) for one in value.split(",") if one.strip()]
    if not parts:
        raise SettingsError(f"{setting}: names no host")
    login = parts[0].netloc.rpartition("@")[0]
    return [
        one._replace(netloc=f"{login}@{one.netloc}").geturl() if login and "@" not in one.netloc else one.geturl()
        for one in parts
    ]


def _split(setting: str, url: str) -> SplitResult:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"{setting}: is not an address such as https://HOST:9200")
    return parts


def without_login(url: str) -> str:
    return url.rpartition("@")[2]


def token_and_address(url: str) -> tuple[str, str]:
    """Split an address into a token and the rest: `USER:PASSWORD@`, or a key alone as `KEY@` or `:KEY@`."""
    parts = urlsplit(url)
    if not parts.scheme.startswith("http"):
        return "", url
    login, _, host = parts.netloc.rpartition("@")
    token = ":".join(unquote(part) for part in login.split(":", 1) if part)
    return token, parts._replace(netloc=host, query="", fragment="").geturl()

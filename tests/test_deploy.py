"""The files that put a server into operation: what they name exists, and they say what they should."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from jiyi.settings import load_settings

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return found


def test_the_settings_that_compose_hands_over_are_read(
    compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"JIYI_DB_PASSWORD": "a", "JIYI_REDIS_PASSWORD": "b", "JIYI_HOSTS": '["memory.example.org"]'}

    def filled(text: str) -> str:
        return re.sub(r"\$\{(\w+)[^}]*\}", lambda found: given[found[1]], text)

    for name in ("server", "worker"):
        for variable, value in compose["services"][name]["environment"].items():
            monkeypatch.setenv(variable, filled(value))
        settings = load_settings()
        assert settings.url == "postgresql://jiyi:a@postgres/jiyi"
        assert settings.cache.redis_url is not None
        assert settings.cache.redis_url.get_secret_value() == "redis://:b@redis:6379/0"
        assert settings.server.allow_hosts == ("memory.example.org",)


def test_compose_holds_no_secret_and_opens_no_port_to_others(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"server", "worker", "postgres", "redis"}
    for name, service in compose["services"].items():
        for variable, value in service.get("environment", {}).items():
            assert "PASSWORD" not in variable or value.startswith("${"), (name, variable)
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), (name, port)
    for name in ("server", "worker"):
        service = compose["services"][name]
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
    wanted = compose["services"]["server"]["stop_grace_period"]
    assert int(wanted.removesuffix("s")) > load_settings().server.shutdown_timeout_s


def test_compose_with_engines_searches_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = yaml.safe_load((DEPLOY / "engines.yaml").read_text("utf-8"))["services"]
    assert not any("ports" in service for service in engines.values())
    assert engines["server"]["environment"] == engines["worker"]["environment"]
    for variable, value in engines["server"]["environment"].items():
        monkeypatch.setenv(variable, value)
        if variable.endswith("_URL"):
            host = re.search(r"//(\w+)", value)
            assert host is not None and host[1] in engines
    assert (load_settings().engines.vectors, load_settings().engines.words) == ("milvus", "elasticsearch")


def test_the_container_installs_extras_that_exist_and_is_nobody_special() -> None:
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = re.search(r"\[([\w,]+)\$\{ENGINES:\+,([\w,]+)\}\]", text)
    assert named is not None and {"postgres", "redis", "mcp"} <= set(named[1].split(",")) <= set(extras)
    assert re.search(r"(?m)^USER jiyi$", text) and "STOPSIGNAL SIGTERM" in text
    lock = (DEPLOY / "lock.py").read_text("utf-8")
    assert f'EXTRAS = "{named[1]},{named[2]}"' in lock
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    copied = [word for line in re.findall(r"(?m)^COPY ((?!--from).*)$", text) for word in line.split()[:-1]]
    assert ignored[0] == "*" and {f"!{name}" for name in copied} <= set(ignored)
    assert all((ROOT / name).exists() for name in copied)


def test_the_build_of_the_container_gets_the_models_and_no_version_is_left_open() -> None:
    shut_out = [line for line in (ROOT / ".dockerignore").read_text("utf-8").split() if line[0] != "!"]
    assert shut_out == ["*", "**/__pycache__"], "what is below src, also the models, must reach the build"
    pinned = dict(
        line.split("==") for line in (DEPLOY / "constraints.txt").read_text("utf-8").splitlines() if line[0] != "#"
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in ("postgres", "redis", "mcp", "llm", "milvus", "mongodb"):
        wanted += extras[extra]
    for requirement in map(Requirement, wanted):
        assert pinned[requirement.name] in requirement.specifier, f"{requirement}: run make lock"


def test_the_unit_is_valid_and_gives_it_time_to_finish(tmp_path: Path) -> None:
    text = (DEPLOY / "jiyi.service").read_text("utf-8")
    patience = re.search(r"TimeoutStopSec=(\d+)", text)
    assert patience is not None and int(patience[1]) > load_settings().server.shutdown_timeout_s
    recipe = (ROOT / "docs" / "deploy.md").read_text("utf-8")
    assert "EnvironmentFile=-/etc/jiyi/environment" in text
    assert "--property EnvironmentFile=-/etc/jiyi/environment" in recipe, "the command for keys opens another store"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not here")
    unit = tmp_path / "jiyi.service"
    unit.write_text(text.replace("/opt/jiyi/bin/jiyi", "/bin/true").replace("User=jiyi", "User=root"), "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    told = [line for line in done.stderr.splitlines() if unit.name in line]
    assert done.returncode == 0 and not told, done.stderr


def test_the_script_for_the_database_is_a_script() -> None:
    script = DEPLOY / "postgres.sh"
    assert os.access(script, os.X_OK)
    subprocess.run(["sh", "-n", script], timeout=60, check=True)
    assert "NOSUPERUSER NOBYPASSRLS" in script.read_text("utf-8")

"""What `make dist` builds works outside the checkout, with the packages that its metadata names and no others."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "jiyi"

pytestmark = pytest.mark.slow


def build(target: str, directory: Path, source: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(directory)]
    subprocess.run(command, cwd=source, timeout=300, check=True, capture_output=True)
    [made] = directory.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the unpacked sdist builds, as an installer without a matching wheel would."""
    place = tmp_path_factory.mktemp("dist")
    with tarfile.open(build("sdist", place / "sdist", ROOT)) as sdist:
        sdist.extractall(place / "unpacked", filter="data")
    [unpacked] = (place / "unpacked").iterdir()
    assert {path.name for path in unpacked.iterdir()} >= {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"}
    return build("wheel", place / "wheel", unpacked)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_the_wheel_holds_the_whole_package_and_is_for_any_machine(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    expected = {
        path.relative_to(PACKAGE.parent).as_posix(): digest(path.read_bytes())
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name: digest(archive.read(name)) for name in archive.namelist() if ".dist-info/" not in name}
    assert {"jiyi/weights/reader-en.onnx", "jiyi/weights/embedder.onnx", "jiyi/py.typed"} <= set(held)
    assert held == expected


def test_all_extras_that_fit_together_are_in_all() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {extra for requirement in extras["all"] for extra in Requirement(requirement).extras}
    engines = {"elasticsearch", "milvus", "mongodb"}  # each is in `engines`
    parts = {extra for extra, packages in extras.items() if not packages}
    assert named == set(extras) - {"all", "strands", "sentence-transformers"} - engines - parts


def needed(package: Distribution, extras: frozenset[str] = frozenset()) -> dict[str, Distribution]:
    """The packages that one leads to, from this environment."""
    found: dict[str, Distribution] = {}
    for requirement in map(Requirement, package.requires or ()):
        markers = [{"extra": extra} for extra in extras or {""}]
        if requirement.marker is None or any(requirement.marker.evaluate(marker) for marker in markers):
            there = distribution(requirement.name)
            found |= {there.name: there} | needed(there, frozenset(requirement.extras))
    return found


def link(package: Distribution, packages: Path) -> None:
    """Make a package of this environment importable in another one, without the packages beside it."""
    for top in {file.parts[0] for file in package.files or ()} - {".."}:
        there = Path(str(package.locate_file(top)))
        if there.exists() and not (packages / top).exists():
            (packages / top).symlink_to(there)


def test_a_clean_installation_adds_searches_and_serves(wheel: Path, tmp_path: Path) -> None:
    """Only the wheel and the packages it asks for are there; those come from this environment, not from a network."""
    place = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], timeout=60, check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, str(wheel)], timeout=120, check=True)
    [packages] = place.glob("lib/python*/site-packages")
    [metadata] = packages.glob("jiyi-*.dist-info")
    for package in needed(Distribution.at(metadata)).values():
        link(package, packages)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("JIYI_", "PYTHON", "VIRTUAL"))
    }

    def run(program: str, *arguments: str) -> str:
        command = [place / "bin" / program, *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert str(packages) in run("python", "-c", "import jiyi.server, jiyi.client, watchfiles; print(jiyi.__file__)")
    run("jiyi", "add", "I moved to Berlin in May")
    assert "Berlin" in run("jiyi", "search", "where does she live?")
    assert "reader" in run("jiyi", "doctor")

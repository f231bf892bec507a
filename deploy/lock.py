"""Write constraints.txt: the versions that the container installs. Run it with the container's Python (3.12).

Versions only, no hashes: the same file serves x86_64 and aarch64, and it is checked that both have wheels.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "deploy" / "constraints.txt"
EXTRAS = "postgres,redis,mcp,llm,milvus,elasticsearch,mongodb"
MACHINES = ("x86_64", "aarch64")
HEADING = """\
# Versions of the packages in the container, on x86_64 and aarch64. Written by `make lock`.
"""


def pip(*arguments: str) -> dict[str, Any]:
    """Return pip's report of what it would install."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    done = subprocess.run([*command, "--only-binary", ":all:", *arguments], stdout=subprocess.PIPE, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def resolve() -> list[str]:
    installed = [item["metadata"] for item in pip(f"{ROOT}[{EXTRAS}]", "hatchling")["install"]]
    pins = (f"{item['name'].lower().replace('_', '-')}=={item['version']}" for item in installed)
    return sorted(pin for pin in pins if not pin.startswith("jiyi=="))


def check(machine: str) -> None:
    """Fail if a package has no wheel for the machine."""
    platforms = [f"--platform=manylinux_2_{version}_{machine}" for version in (17, 28, 34)]
    platforms.append(f"--platform=manylinux2014_{machine}")
    with tempfile.TemporaryDirectory() as target:
        pip("--no-deps", "--python-version", "3.12", "--target", target, *platforms, "--requirement", str(LOCK))


def main() -> None:
    if sys.version_info[:2] != (3, 12):
        sys.exit(f"this is Python {sys.version.split()[0]}: run it with the container's, 3.12 ")
    LOCK.write_text(HEADING + "\n".join(resolve()) + "\n", encoding="utf-8")
    for machine in MACHINES:
        check(machine)


if __name__ == "__main__":
    main()

"""The text package is cheap to import and its examples run."""

import doctest
import subprocess
import sys
from importlib import import_module

from support import each_case

MODULES = ["words", "terms", "registry", "sentences"]


@each_case("name", MODULES)
def test_examples_run(name: str) -> None:
    assert doctest.testmod(import_module(f"jiyi.languages.{name}")).failed == 0


def test_importing_loads_nothing_heavy() -> None:
    imports = "; ".join(f"import jiyi.languages.{name}" for name in MODULES)
    code = f"import sys; {imports}; print({{'rjieba', 'Stemmer', 'numpy'}} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"

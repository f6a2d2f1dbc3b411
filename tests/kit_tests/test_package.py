"""What is installed from a wheel is whole."""

from __future__ import annotations

import tomllib
from pathlib import Path

import cru

ROOT = Path(cru.__file__).parent


def test_every_file_beside_the_code_is_package_data() -> None:
    pyproject = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())
    patterns = pyproject["tool"]["setuptools"]["package-data"]["cru"]
    packed = {file for pattern in patterns for file in ROOT.glob(pattern) if file.is_file()}
    beside = {file for file in ROOT.rglob("*") if file.is_file() and file.suffix not in (".py", ".pyc")}
    assert beside and sorted(beside - packed) == []
    assert [pattern for pattern in patterns if not any(ROOT.glob(pattern))] == []

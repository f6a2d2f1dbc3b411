"""The files from which hooks are read decide what runs: the model changes none of them unasked, in any dialect."""

from __future__ import annotations

from pathlib import Path

import pytest

from cru.core.guard.rules.paths import PathRoots, is_decisive, locate
from cru.core.hooks import HookLocations
from cru.core.hooks.dialects import FOOTPRINTS

HOME, PROJECT = Path("/home/person"), Path("/home/person/project")
PLACES = [
    pytest.param(layer, path, id=f"{dialect}-{path}")
    for dialect, footprint in FOOTPRINTS.items()
    for layer, path in footprint.places(HookLocations(HOME / ".cru", HOME, PROJECT, PROJECT / "sub", {}))
    if layer != "system"
]


@pytest.mark.parametrize(("layer", "path"), PLACES)
def test_a_file_of_hooks_is_decisive(layer: str, path: Path) -> None:
    places = PathRoots(str(PROJECT), str(HOME / ".cru"), str(HOME))
    home_or_project = "PROTECTED_AT_HOME" if layer == "user" else "PROTECTED_NAMES"
    hint = f"add the place of {path} to {home_or_project} of src/cru/core/guard/rules/paths.py"
    assert is_decisive(locate(places, "write", str(path)), places), hint
    assert not is_decisive(locate(places, "write", f"{PROJECT}/src/{path.name}x"), places)

"""`cru` is the namespace for plugins and nothing else: every name, in both languages, in every form of asking for it."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.core.plugins.test_lifecycle import Shelf

import cru
from cru.core.api.host import NamespaceError
from cru.core.api.names import ABSENT, CONSTANTS, INDEXED, NAMES
from cru.core.api.python import NAMESPACE

EVERY = sorted({*NAMES, *CONSTANTS, *INDEXED, *ABSENT})
TOP = sorted({name.partition(".")[0] for name in EVERY})


def member(name: str) -> object:
    """A name by attributes, from `import cru`."""
    found: object = cru
    for part in name.split("."):
        found = getattr(found, f"{part}_" if part in ("global",) else part)
    return found


@pytest.mark.parametrize("name", EVERY)
def test_every_name_is_an_attribute(name: str) -> None:
    found = member(name)
    assert found is not None or name in ("json.null", "oq.null", "vault.active")
    assert type(found).__name__ != "module"


@pytest.mark.parametrize("name", TOP)
def test_every_first_word_can_be_imported(name: str) -> None:
    scope: dict[str, object] = {}
    exec(f"from cru import {name} as found", scope)  # the statement is what is tested
    assert type(scope["found"]).__name__ != "module"
    assert repr(scope["found"]) == repr(getattr(NAMESPACE, name))


def test_nothing_else_of_cru_can_be_imported() -> None:
    modules = {module.name for module in pkgutil.iter_modules(cru.__path__)}
    assert modules == cru.ROOMS and not modules & set(TOP)
    for name in TOP:
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"cru.{name}")


def test_names_are_the_same_when_all_of_the_program_is_loaded() -> None:
    program = (
        "import importlib, pkgutil, cru\n"
        "for module in pkgutil.walk_packages(cru.__path__, 'cru.'):\n"
        "    if not module.name.endswith('__main__'): importlib.import_module(module.name)\n"
        f"print(*(name for name in {TOP!r} if type(getattr(cru, name)).__name__ == 'module'), sep=',')"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "\n"), run.stderr


@pytest.mark.parametrize("name", cru.ERRORS)
def test_errors_are_public(name: str) -> None:
    assert issubclass(getattr(cru, name), NamespaceError)


def test_every_name_is_there_in_lua(tmp_path: Path) -> None:
    paths = ", ".join(f"'{name}'" for name in EVERY)
    shelf = Shelf(tmp_path)
    shelf.put(
        "names.lua",
        f"for _, path in ipairs({{{paths}}}) do\n"
        "  local found = cru\n"
        "  for part in path:gmatch('[^.]+') do found = found[part] end\n"
        "  assert(found ~= nil, path)\n"
        "end",
    )
    shelf.put("none.lua", "assert(cru.no_such_name ~= nil, 'no_such_name')")

    async def work() -> None:
        assert shelf.states() == {"names": "active", "none": "error"}, shelf.world.notices()

    shelf.run(work)

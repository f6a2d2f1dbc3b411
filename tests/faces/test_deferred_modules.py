"""Modules whose code runs on first use are otherwise like any other."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from cru.faces.cli import deferred_modules
from cru.faces.cli.deferred_modules import DeferringFinder, defer_modules

NAME = "put_off"
CODE = """
import sys, time
early = "early"
itself = sys.modules[__name__].early
runs = globals().get("runs", 0) + 1
PAUSE
late = "late"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(deferred_modules, "DEFERRED", frozenset({NAME}))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    defer_modules()
    yield tmp_path
    sys.modules.pop(NAME, None)


def put_off(here: Path, code: str) -> ModuleType:
    (here / f"{NAME}.py").write_text(code)
    importlib.invalidate_caches()
    return importlib.import_module(NAME)


def test_its_code_runs_when_a_name_is_used_and_then_it_is_a_module_like_any(here: Path) -> None:
    module = put_off(here, CODE.replace("PAUSE", ""))
    assert importlib.import_module(NAME) is module and module.__spec__ is not None and module.__file__ is not None
    assert "late" not in vars(module)
    assert (module.late, module.itself, module.runs) == ("late", "early", 1)
    assert type(module) is ModuleType and isinstance(module.__loader__, SourceFileLoader)
    assert module.__spec__.loader is module.__loader__
    with pytest.raises(AttributeError, match=f"module '{NAME}' has no attribute 'other'"):
        _ = module.other


def test_threads_that_use_it_first_at_the_same_time_find_it_whole(here: Path) -> None:
    module = put_off(here, CODE.replace("PAUSE", "waiting.wait(5)"))
    vars(module)["waiting"] = waiting = threading.Event()
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(module.late)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert names == []
    waiting.set()
    for thread in threads:
        thread.join()
    assert names == ["late"] * 4 and module.runs == 1


def test_what_goes_wrong_in_it_is_raised_where_it_is_used(here: Path) -> None:
    module = put_off(here, "raise ImportError('not here')")
    for _ in range(2):
        with pytest.raises(ImportError, match="not here"):
            _ = module.name


def test_others_are_found_as_ever(here: Path) -> None:
    assert DeferringFinder.find_spec("json") is None
    defer_modules()
    assert sys.meta_path.count(DeferringFinder) == 1

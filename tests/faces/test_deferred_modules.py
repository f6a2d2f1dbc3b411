"""Modules whose code runs on first use are otherwise like any other."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from cru.faces.cli import deferred_modules
from cru.faces.cli.deferred_modules import (
    DEFERRED,
    KNOWN,
    DeferredModule,
    DeferredName,
    DeferringFinder,
    defer_modules,
)

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


def fresh(code: str) -> str:
    """What a new interpreter prints that defers modules."""
    start = "from cru.faces.cli.deferred_modules import DeferredModule, defer_modules; defer_modules()\n"
    run = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.parametrize("module", sorted(KNOWN))
def test_known_names_have_the_values_that_the_module_itself_gives(module: str) -> None:
    real = importlib.import_module(module)
    if isinstance(real, DeferredModule):
        real.run()
    known = KNOWN[module]()
    assert known and known.keys() <= vars(real).keys()
    for name, value in known.items():
        expected = getattr(real, name)
        if isinstance(value, DeferredName):
            assert value._load() is expected
        elif callable(value) and not isinstance(value, type):
            assert callable(expected)
        else:
            assert value == expected
    assert module != "platform" or known["system"]() == real.system()  # type: ignore[operator]


def test_asyncio_msgspec_and_tomllib_load_without_running_any_of_them() -> None:
    code = """
import sys, asyncio, pathlib, tomllib, urllib.parse, cru.core.base.values, msgspec
asyncio.run(asyncio.sleep(0))
assert tomllib.loads('a = "b"') == {"a": "b"}
print(*sorted(name for name, module in sys.modules.items() if isinstance(module, DeferredModule)))
"""
    if sys.version_info < (3, 12):
        assert set(fresh(code).split()) == DEFERRED


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import tomllib; print(tomllib.loads('a = 1979-05-27T07:32:00\\nb = 0x1f\\nc = 07:32:00'))",
         "{'a': datetime.datetime(1979, 5, 27, 7, 32), 'b': 31, 'c': datetime.time(7, 32)}"),
        ("import asyncio, logging\nlogging.basicConfig(level='DEBUG', stream=sys.stdout)\nasyncio.log.logger.debug('a %s', 1)",
         "DEBUG:asyncio:a 1"),
        ("import asyncio\nasyncio.log.logger.debug('lost')\nprint(type(sys.modules['logging']).__name__)", "DeferredModule"),
        ("import asyncio\nprint(asyncio.log.logger.isEnabledFor(30))", "True"),
        ("import asyncio\nsys.stderr = sys.stdout\nasyncio.log.logger.error('broken: %s', 5)", "broken: 5"),
        ("import traceback\ndef f(): return traceback.extract_stack()\nprint([frame.name for frame in f()])", "['<module>', 'f']"),
        ("import pickle, datetime\nprint(pickle.loads(pickle.dumps(datetime.date(2000, 1, 2))).isoformat())", "2000-01-02"),
        ("import datetime\nprint(datetime.datetime.strptime('2000', '%Y').year)", "2000"),
        ("import concurrent.futures.thread as t\nprint(t.ThreadPoolExecutor(1).submit(int, '7').result())", "7"),
        ("import platform\nprint(platform.system() == os.uname().sysname, bool(platform.python_version()))", "True True"),
        ("import logging.handlers\nprint(issubclass(logging.handlers.SocketHandler, logging.Handler))", "True"),
        ("from string import Template, digits\nprint(Template('$a').substitute(a=digits))", "0123456789"),
        ("from datetime import *\nprint(timedelta(1).days)", "1"),
        ("import subprocess, pathlib\nprint(pathlib.PureWindowsPath('C:/a').drive)", "C:"),
    ],
)  # fmt: skip
def test_deferred_modules_of_the_library_do_what_they_always_do(code: str, expected: str) -> None:
    assert fresh("import os, sys\n" + code) == expected


def test_forward_references_are_not_compiled_while_msgspec_and_tomllib_load_and_can_still_be_resolved() -> None:
    code = """
import builtins, sys
calls, compile = [], builtins.compile
builtins.compile = lambda *args, **options: calls.append(args[0]) or compile(*args, **options)
import asyncio, tomllib, cru.core.base.values, msgspec, typing
from tomllib import _parser
from msgspec import _utils
assert typing.get_type_hints(_parser.Output) == {"data": _parser.NestedDict, "flags": _parser.Flags}
assert type(_parser.__loader__) is type(_utils.__spec__.loader) is type(asyncio.__loader__)
print(calls)
class Point(msgspec.Struct):
    x: "int"
try:
    typing.ForwardRef("1 +")
except SyntaxError:
    print(msgspec.convert({"x": 1}, Point))
"""
    if sys.version_info < (3, 14):
        assert fresh(code) == "[]\nPoint(x=1)"


def test_two_threads_may_load_modules_whose_references_remain_text(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for the other inside its module, so that both would hold the replaced name at the same time."""
    names = ("text_a", "text_b")
    monkeypatch.setattr(deferred_modules, "UNCOMPILED", frozenset(names))
    both = threading.Barrier(2)
    monkeypatch.setattr(sys, "both", both, raising=False)
    for name in names:
        (here / f"{name}.py").write_text(
            "import sys, threading, typing\n"
            "try: sys.both.wait(0.2)\n"
            "except threading.BrokenBarrierError: pass\n"
            "reference = typing.ForwardRef('1 +')\n"
        )
    importlib.invalidate_caches()
    errors: list[object] = []

    def load(name: str) -> None:
        try:
            importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001  asserted below
            errors.append(error)

    threads = [threading.Thread(name=name, target=load, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
        sys.modules.pop(thread.name, None)
    assert errors == [] and not hasattr(importlib.import_module("typing"), "compile")

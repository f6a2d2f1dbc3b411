"""What a script loads from beside itself belongs to what a person has trusted; what Python compiles of it does not."""

from __future__ import annotations

import json
import py_compile
from pathlib import Path

import pytest
from tests.core.hooks.crush_world import about
from tests.core.hooks.dialect_world import calls, results, turn
from tests.core.hooks.test_trust import entry
from tests.kit import HomeDir, Reply, cru

from cru.core.hooks.trust.fingerprint import take_fingerprint

H = "import json, helper\n"
# case: (files, command, what is written later, whether it is noticed)
WRITTEN: dict[str, tuple[dict[str, str], str, str, bool]] = {
    "a module in place of the standard library's": ({"h.py": H}, "python3 h.py", "json.py", True),
    "one that the standard library imports": ({"h.py": H}, "python3 h.py", "codecs.py", True),
    "a package in its place": ({"h.py": H}, "python3 h.py", "json/__init__.py", True),
    "a compiled module": ({"h.py": H}, "python3 h.py", "json.pyc", True),
    "a library": ({"h.py": H}, "python3 h.py", "json.cpython-311-x86_64-linux-gnu.so", True),
    "a module that was missing": ({"h.py": H}, "python3 h.py", "helper.py", True),
    "a module that is there": ({"h.py": H, "helper.py": "x = 1"}, "python3 h.py", "helper.py", True),
    "a module of a module": ({"h.py": H, "helper.py": "from deep import x"}, "python3 h.py", "deep.py", True),
    "in a package": ({"h.py": H, "helper/__init__.py": ""}, "python3 h.py", "helper/more.py", True),
    "by its name at run time": ({"h.py": 'importlib.import_module("other")'}, "python3 h.py", "other.py", True),
    "in a folder below": ({"tools/h.py": H}, "python3 tools/h.py", "tools/json.py", True),
    "run as it is": ({"tools/h": "#!/usr/bin/env python3\nimport helper"}, "tools/h", "tools/helper.py", True),
    "a module of -m": ({"pkg/__main__.py": ""}, "python3 -m pkg", "json.py", True),
    "a file of -m": ({"mod.py": ""}, "python3 -m mod", "mod.py", True),
    "what a shell sources": ({"h.sh": ". ./lib.sh", "lib.sh": ""}, "sh h.sh", "lib.sh", True),
    "beside the script": ({"t/h.sh": 'source "$(dirname "$0")/lib.sh"', "t/lib.sh": ""}, "bash t/h.sh", "t/lib.sh", True),
    "by a variable": ({"t/h.sh": 'true; . "$DIR/lib.sh"', "t/lib.sh": ""}, "bash t/h.sh", "t/lib.sh", True),
    "what node requires": ({"h.js": 'const x = require("./lib")', "lib.js": ""}, "node h.js", "lib.js", True),
    "what node imports": ({"h.mjs": 'import x from "./lib/x.mjs"', "lib/x.mjs": ""}, "node h.mjs", "lib/x.mjs", True),
    "of a module of node": (
        {"h.js": 'require("./lib")', "lib/index.js": 'require("../y.js")', "y.js": ""}, "node h.js", "y.js", True),
    "what Ruby requires": ({"h.rb": "require_relative 'lib'", "lib.rb": ""}, "ruby h.rb", "lib.rb", True),
    "what Perl requires": ({"h.pl": 'require "./lib.pl";', "lib.pl": ""}, "perl h.pl", "lib.pl", True),
    "another file": ({"h.py": H}, "python3 h.py", "main.py", False),
    "data of that name": ({"h.py": H}, "python3 h.py", "helper.txt", False),
    "a folder that is no package": ({"h.py": H}, "python3 h.py", "json/data.txt", False),
    "elsewhere": ({"tools/h.py": H}, "python3 tools/h.py", "json.py", False),
    "a cache": ({"pkg/__main__.py": "", "pkg/a.py": ""}, "python3 -m pkg", "pkg/__pycache__/a.cpython-311.pyc", False),
    "a cache without a source": ({"pkg/__main__.py": ""}, "python3 -m pkg", "pkg/__pycache__/a.cpython-311.pyc", True),
    "a compiled module beside its source": ({"pkg/__main__.py": "", "pkg/a.py": ""}, "python3 -m pkg", "pkg/a.pyc", True),
    "a cache where Python ignores its variables": (
        {"pkg/__main__.py": "", "pkg/a.py": ""}, "python3 -E -m pkg", "pkg/__pycache__/a.cpython-311.pyc", True),
    "a cache where they are taken away": (
        {"pkg/__main__.py": "", "pkg/a.py": ""}, "env -i python3 -m pkg", "pkg/__pycache__/a.cpython-311.pyc", True),
    "a cache where the first line says so": (
        {"h.py": "#!/usr/bin/python3 -E\nimport helper", "helper.py": "", "__pycache__/x": ""}, "./h.py",
        "__pycache__/helper.cpython-311.pyc", True),
    "a cache of a neighbour": (
        {"h.py": "#!/usr/bin/env python3\n" + H, "helper.py": "", "__pycache__/x": ""}, "./h.py",
        "__pycache__/helper.cpython-311.pyc", False),
    "a cache of a neighbour, likewise": (
        {"h.py": H, "helper.py": "", "__pycache__/x": ""}, "python3 -E h.py", "__pycache__/helper.cpython-311.pyc", True),
}  # fmt: skip


def put(path: Path, name: str, text: str) -> None:
    (path / name).parent.mkdir(parents=True, exist_ok=True)
    (path / name).write_text(text)
    if text.startswith("#!"):
        (path / name).chmod(0o755)


@pytest.mark.parametrize("case", WRITTEN)
def test_what_is_written_later(tmp_path: Path, case: str) -> None:
    files, command, written, is_noticed = WRITTEN[case]
    for name, text in files.items():
        put(tmp_path, name, text)
    before = take_fingerprint(entry(tmp_path, command), about(tmp_path))
    put(tmp_path, written, "planted")
    after = take_fingerprint(entry(tmp_path, command), about(tmp_path))
    assert (before.fingerprint != after.fingerprint) is is_noticed
    assert not before.over and not after.over


def guard(home: HomeDir, command: str, **files: str) -> None:
    for name, text in {"pkg/__main__.py": "from pkg import words", "pkg/words.py": "", **files}.items():
        put(home.project, name, text)
    handler = {"type": "command", "command": command}
    put(home.project, ".claude/settings.json", json.dumps({"hooks": {"PreToolUse": [{"hooks": [handler]}]}}))
    shown = cru("hooks", "review", home=home)
    line = next(line for line in (shown.out + shown.err).splitlines() if "what is shown: " in line)
    assert cru(*line.partition("what is shown: cru ")[2].split(), home=home).code == 0


def read(home: HomeDir) -> list[str]:
    done, last = turn(home, calls("echo ran"), calls("echo again"), Reply("done"))
    assert done.code == 0, done
    return [text.strip() for text in results(last)][-2:]


def test_a_hook_keeps_its_own_trust(home: HomeDir) -> None:
    guard(home, "python3 -m pkg")
    assert read(home) == ["ran", "again"] and read(home) == ["ran", "again"]
    assert not (home.project / "pkg" / "__pycache__").exists()


def test_a_planted_cache_is_not_run(home: HomeDir, tmp_path: Path) -> None:
    """It fits its source by time and size, so that Python would take it."""
    guard(home, "python3 -m pkg")
    source = home.project / "pkg" / "words.py"
    planted = tmp_path / "planted.py"
    planted.write_text(f"open({str(tmp_path / 'planted')!r}, 'w')")
    cache = source.parent / "__pycache__" / "words.cpython-311.pyc"
    cache.parent.mkdir()
    py_compile.compile(str(planted), str(cache), doraise=True)
    data = bytearray(cache.read_bytes())
    status = source.stat()
    data[8:16] = int(status.st_mtime).to_bytes(4, "little") + status.st_size.to_bytes(4, "little")
    cache.write_bytes(data)
    assert read(home) == ["ran", "again"]
    assert not (tmp_path / "planted").exists()

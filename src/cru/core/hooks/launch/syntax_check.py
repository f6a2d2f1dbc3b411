"""Whether shell source and scripts can be read at all. What is read here for certain is right; of the rest the interpreter itself is asked,
which reads it and runs nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Mapping
from pathlib import Path

from cru.core.base.files.regular import read_regular
from cru.core.base.files.search_path import own_env, own_path
from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.programs import base_name
from cru.core.hooks import MAX_CONFIG_BYTES

SECONDS = 5.0
ONLY_READ = 0x400
"""`ast.PyCF_ONLY_AST`, without the module."""
PYTHON = re.compile(r"python(?:3[\d.]*)?")
SHELL = re.compile(r"(?:ba|da)?sh")
READ_PYTHON = "import sys; compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec', 0x400)"


def find_shell_error(source: str, shell: str) -> str:
    """What this shell says of source that it cannot read, "" if it can or if that cannot be told."""
    if SHELL.fullmatch(base_name(shell)) is None or parse(source).problem is None:
        return ""
    return _ask((shell, "-n", "-c", source), os.environ)


def find_script_error(program: str, path: Path, env: Mapping[str, str], project: Path) -> str:
    """What the interpreter says of a script in Python that it cannot read, "" if it can or if that cannot be told: an interpreter that
    lies in `project` is a stranger's program, and is not asked."""
    if PYTHON.fullmatch(base_name(program)) is None:
        return ""
    interpreter = shutil.which(program, path=env.get("PATH", ""))
    if interpreter is None or not os.path.isabs(interpreter) or not own_path(interpreter, str(project)):
        return ""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(read_regular(path, MAX_CONFIG_BYTES), str(path), "exec", ONLY_READ, dont_inherit=True)
    except (SyntaxError, ValueError):
        return _ask((interpreter, "-I", "-c", READ_PYTHON, str(path)), own_env(env, str(project)))
    except (OSError, RecursionError, MemoryError):
        return ""
    return ""


def _ask(words: tuple[str, ...], env: Mapping[str, str]) -> str:
    """The last line of what an interpreter that fails says."""
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL, env=env, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if done.returncode and lines else ""

"""`cru plugin types`: what an editor reads to complete and check the names of the namespace."""

from __future__ import annotations

from pathlib import Path

from cru.core.api.stubs import lua_definitions, python_stub
from cru.core.base.files.atomic import replace_file
from cru.core.base.values.errors import CruError
from cru.faces.cli.console import show

FOLDER = "typings"
"""Where pyright looks without any setting. The server for Lua reads every file of a workspace that begins with `---@meta`."""
MARK = "made by `cru plugin types`; make it anew after an update of cru"


class NotWritten(CruError):
    """A file of types that cannot be written, or that cru did not write."""


def write_types(folder: Path) -> int:
    """Write both files below `folder/typings`, and say what reads them. Raises NotWritten."""
    files = {
        folder / FOLDER / "cru" / "__init__.pyi": f"# {MARK}\n{python_stub()}",
        folder / FOLDER / "cru.lua": lua_definitions().replace("\n", f"\n-- {MARK}\n", 1),
    }
    for path, text in files.items():
        _write(path, text)
        show(f"{path}")
    show(f"Open {folder} in an editor: pyright and the Lua language server find them. For mypy set MYPYPATH={FOLDER}.")
    return 0


def _write(path: Path, text: str) -> None:
    try:
        if path.exists() and MARK not in path.read_text("utf-8", "replace")[:200]:
            raise NotWritten(f"{path} was not made by cru and is left as it is", "move it away, or name another folder")
        replace_file(path, text.encode(), new_mode=0o666, make_folders=True)
    except OSError as error:
        raise NotWritten(
            f"{path} cannot be written: {error.strerror}", "name a folder that you may write to"
        ) from error

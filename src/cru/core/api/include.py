"""`cru.include`: another file of the same plugin, or of the user's configuration."""

from __future__ import annotations

from pathlib import Path

from cru.core.api.arguments import text
from cru.core.api.host import BadArgument, NamespaceError, call, host


async def include(file: str) -> object:
    """include(file) runs another Lua file with the plugin's globals and gives what it returns; its path is relative to the plugin's folder
    (to cru's home in its init.lua). Raises NamespaceError if it cannot be read, and what the file raises.

    Example: pcall(cru.include, "no such file.lua") --> false
    """
    where = "cru.include"
    here = host()
    path = here.plugin.folder / Path(text(where, "file", file)).expanduser()
    if here.plugin.include is None:
        raise BadArgument(f"{where} is for plugins in Lua", "import it")
    try:
        source = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NamespaceError(f"{where} {file}: {getattr(error, 'strerror', None) or error}") from error
    return await call(here.plugin.include, path, source)

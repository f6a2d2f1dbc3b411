"""The socket on which a run asks for a copy of its conversation, and waits for it (core/conversations/copied.py)."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

from cru.core.base.files.regular import PRIVATE, make_private_folder
from cru.core.conversations.copied import COPIED, socket_path
from cru.core.conversations.entries import new_id

VARIABLE = "CRU_COPY_THROUGH"
"""Names the socket to a run, which takes it from its environment."""
SUFFIX = ".sock"
REFUSED = b"0"


@asynccontextmanager
async def serve_copies(folder: Path, copy: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
    """The path of a socket that answers when `copy` has; False is a refusal."""
    remove_stale_sockets(folder)
    path = str(folder / f"{new_id()[:12]}{SUFFIX}")
    with socket_path(path) as short:
        server = await asyncio.start_unix_server(lambda reader, writer: _answer(reader, writer, copy), short)
    os.chmod(path, PRIVATE)  # the system makes it as the umask lets it
    try:
        yield path
    finally:
        server.close()
        with suppress(FileNotFoundError):
            os.unlink(path)


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, copy: Callable[[], Awaitable[bool]]
) -> None:
    try:
        while await reader.read(1):
            writer.write(COPIED if await copy() else REFUSED)
            await writer.drain()
    except ConnectionError:
        pass  # the run has gone; its end says why
    finally:
        writer.close()


@cache
def remove_stale_sockets(folder: Path) -> None:
    """Make the folder, and take away what killed workers left in it; once a process."""
    make_private_folder(folder)
    for path in folder.glob(f"*{SUFFIX}"):
        with socket.socket(socket.AF_UNIX) as probe, socket_path(str(path)) as short:
            try:
                probe.connect(short)
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
            except FileNotFoundError:
                pass  # its worker has just removed it

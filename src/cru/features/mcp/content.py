"""What a server answers, as text: images and sounds become files, links are named."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from cru.core.base.values.visible import visible

if TYPE_CHECKING:
    import mcp_types

SUFFIXES = {
    "image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
    "audio/wav": ".wav", "audio/mpeg": ".mp3", "application/pdf": ".pdf", "application/gzip": ".gz", "application/zip": ".zip",
}  # fmt: skip

SaveFile = Callable[[bytes, str], Path | None]
"""(content, suffix) → where it was saved, None if it could not be."""


class RemoteResult(Struct, frozen=True):
    """What came of a call, as text."""

    text: str
    is_error: bool = False


def read_result(result: mcp_types.CallToolResult, save: SaveFile) -> RemoteResult:
    """Blocks one below the other; a result that has only structured content as JSON."""
    text = join_blocks(result.content, save)
    if not text and result.structured_content is not None:
        text = msgspec.json.encode(result.structured_content).decode()
    return RemoteResult(text or "(nothing)", bool(result.is_error))


def join_blocks(blocks: Iterable[mcp_types.ContentBlock], save: SaveFile) -> str:
    return "\n".join(filter(None, (_block_text(block, save) for block in blocks)))


def _block_text(block: mcp_types.ContentBlock, save: SaveFile) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return _binary(block.data, block.mime_type, "", save)
        case "resource_link":
            return f"[resource {visible(str(block.uri))}: {visible(block.name)}]"
        case "resource":
            return contents_text(block.resource, save)


def contents_text(contents: mcp_types.TextResourceContents | mcp_types.BlobResourceContents, save: SaveFile) -> str:
    """The content of a resource."""
    text = getattr(contents, "text", None)
    if isinstance(text, str):
        return text
    return _binary(str(getattr(contents, "blob", "")), contents.mime_type or "", str(contents.uri), save)


def _binary(data: str, kind: str, uri: str, save: SaveFile) -> str:
    kind = visible(kind or "unknown type")[:100]
    what = f"{kind} of {visible(uri)}" if uri else kind
    try:
        content = base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        return f"[{what}: what came is no base64]"
    path = save(content, SUFFIXES.get(kind, ".bin"))
    return f"[{what}, {len(content):,} bytes{f', saved in {path}' if path is not None else ': it could not be saved'}]"

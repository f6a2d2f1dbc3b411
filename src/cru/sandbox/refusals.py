"""Whether what a confined program printed, and how it ended, looks as if the sandbox was why something failed."""

from __future__ import annotations

import re

_SURE = (
    r"Read-only file system|Permission denied|Operation not permitted|Device or resource busy|Invalid cross-device link"
    r"|Network is unreachable|[Nn]ame resolution|[Cc]ould(?: not|n't) (?:resolve|connect to server)|Name or service not known"
    r"|Connection refused|No such process"
    r"|unable to create temporary object directory|insufficient permission for adding an object"
)
_FAILED = re.compile(
    rf"{_SURE}|getaddrinfo|ENOTFOUND|EAI_AGAIN|EROFS|ECONNREFUSED|[Cc]annot fork|Resource temporarily unavailable|File too large"
    r"|[Cc]annot connect to|[Ff]ailed to connect to|[Cc]ould not open a connection"
    r"|No such file or directory|Cannot allocate memory|MemoryError|bwrap:"
)
"""What programs print if it was the sandbox that refused; it may be something else, too."""
_SUCCEEDED = re.compile(rf"^.{{0,500}}(?:{_SURE})[^\w\n]{{0,5}}$|^bwrap:", re.MULTILINE)
"""The same of a command of which another part has succeeded (`x || true`, `x | tail -1`): a message ends so, a text seldom does."""
_SILENT = {5: "curl", 6: "curl", 7: "curl", 56: "curl", 4: "wget"}
"""Exit statuses of programs that found no way to a host, and may say nothing of it (`-s`, `-q`)."""


def looks_refused(command: str, output: str, exit_status: int | None) -> bool:
    """exit_status: None while that is not known"""
    if exit_status == 0:
        return _SUCCEEDED.search(output) is not None
    return _FAILED.search(output) is not None or (exit_status is not None and _SILENT.get(exit_status, "\0") in command)

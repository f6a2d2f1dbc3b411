"""Whether what a confined program printed, and how it ended, looks as if the sandbox was why something failed."""

from __future__ import annotations

import re
from typing import NamedTuple

_NO_NETWORK = (
    r"Network is unreachable|[Nn]ame resolution|[Cc]ould(?: not|n't) (?:resolve|connect to server)"
    r"|Name or service not known|Connection refused|No matching distribution found for \S+"
)
_SURE = (
    r"Read-only file system|Permission denied|Operation not permitted|Device or resource busy|Invalid cross-device link|No such process"
    r"|unable to create temporary object directory|insufficient permission for adding an object"
)
_FAILED = (
    rf"{_SURE}|[Cc]annot connect to|[Ff]ailed to connect to|[Cc]ould not open a connection|EROFS|[Cc]annot fork"
    r"|Resource temporarily unavailable|File too large|No such file or directory|Cannot allocate memory|MemoryError|bwrap:"
    r"|unshare failed|CLONE_NEWUSER|[Nn]ew namespace|No usable sandbox"
    r"|LeakSanitizer has encountered a fatal error"
    # what is hidden has keys and settings
    r"|Host key verification failed|failed to sign the data|[Uu]nable to locate credentials|ENEEDAUTH|could not read (?:Username|Password)"
    r"|gh auth login|update of config-file failed|ENOENT|no tracking information"
)
_NO_HOST = rf"{_NO_NETWORK}|getaddrinfo|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|from versions: none"


class _Expressions(NamedTuple):
    """failed: what programs print if it was the sandbox that refused; it may be something else, too
    succeeded: the same of a command of which another part has succeeded (`x || true`, `x | tail -1`): a message ends so, a text seldom does
    """

    failed: re.Pattern[str]
    succeeded: re.Pattern[str]


def _compile(failed: str, sure: str) -> _Expressions:
    named = r"(?:: ['\"][^'\"\n]{0,500}['\"])?"  # [Errno 30] Read-only file system: '/usr/x'
    succeeded = rf"^.{{0,500}}(?:{sure}){named}[^\w\n]{{0,5}}$|^bwrap:"
    return _Expressions(re.compile(failed), re.compile(succeeded, re.MULTILINE))


_WITH_NETWORK = _compile(_FAILED, _SURE)
_WITHOUT_NETWORK = _compile(f"{_FAILED}|{_NO_HOST}", f"{_SURE}|{_NO_NETWORK}")
_SILENT = {5: "curl", 6: "curl", 7: "curl", 56: "curl", 4: "wget"}
"""Exit statuses of programs that found no way to a host, and may say nothing of it (`-s`, `-q`)."""


def looks_refused(command: str, output: str, exit_status: int | None, *, has_network: bool) -> bool:
    """exit_status: None while that is not known; has_network: the sandbox keeps nobody from a host"""
    expressions = _WITH_NETWORK if has_network else _WITHOUT_NETWORK
    if exit_status == 0:
        return expressions.succeeded.search(output) is not None
    is_silent = not has_network and exit_status is not None and _SILENT.get(exit_status, "\0") in command
    return is_silent or expressions.failed.search(output) is not None

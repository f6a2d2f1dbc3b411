"""The last line of a run of `--json-config`, on standard error: how it ended, in chibi's words."""

from __future__ import annotations

import os

import msgspec

from cru.faces.cli.console import ExitStatus
from cru.faces.cli.json_mode.face import JsonFace

# Classes of errors, by name so that none of their modules is loaded, and exit statuses → chibi's words. The rest is internal_error.
BY_ERROR = {
    "NoSuchContext": "not_found", "FileNotFoundError": "not_found", "NameTaken": "already_exists", "FileExistsError": "already_exists",
    "NotConfirmed": "permission_denied", "PermissionError": "permission_denied", "ConfigError": "invalid_data",
    "StoreUnreadable": "invalid_data", "MigrationFailed": "invalid_data",
}  # fmt: skip
BY_CODE = {
    ExitStatus.USAGE: "invalid_input",
    ExitStatus.DENIED: "permission_denied",
    ExitStatus.NO_MODEL: "not_found",
}


def report_outcome(code: int, error: BaseException | None) -> None:
    """{"type": "done", "ok", and if it is not: "code", "message"}."""
    line: dict[str, object] = {"type": "done", "ok": code == ExitStatus.DONE}
    if code:
        names = [kind.__name__ for kind in type(error).__mro__]
        word = next((BY_ERROR[name] for name in names if name in BY_ERROR), BY_CODE.get(code, "internal_error"))
        result = JsonFace.last
        reason = (result.error or result.reason) if result is not None else ""
        line |= {"code": word, "message": getattr(error, "message", "") or reason or f"exit status {code}"}
    try:
        os.write(2, msgspec.json.encode(line) + b"\n")
    except OSError:
        pass  # nobody can be told

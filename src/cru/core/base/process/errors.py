"""Why a process could not be started: facts for whoever words it."""

from __future__ import annotations

import errno
from enum import Enum
from pathlib import Path

from cru.core.base.files.regular import open_regular
from cru.core.base.values.errors import CruError


class StartProblem(Enum):
    """What kept a process from starting."""

    NUL_CHARACTER = "nul"
    UNUSABLE_TEXT = "text"
    TOO_LONG = "too long"
    FOLDER_GONE = "folder"
    PROGRAM_NOT_FOUND = "not found"
    INTERPRETER_NOT_FOUND = "interpreter"
    WINDOWS_LINE_END = "cr lf"
    NOT_A_PROGRAM = "no program"
    REFUSED_BY_SYSTEM = "system"


class StartError(CruError):
    """A process could not be started.

    problem: what kept it
    program: as it was named
    folder: where it was to run
    reason: the words of the system
    number: the error number of the system, 0 if it was never asked
    """

    def __init__(self, problem: StartProblem, program: str, folder: Path, reason: str, number: int = 0) -> None:
        super().__init__(*_words(problem, program, folder, reason))
        self.problem = problem
        self.program = program
        self.folder = folder
        self.reason = reason
        self.number = number


def start_error(error: OSError | ValueError, program: str, folder: Path) -> StartError:
    """What `subprocess.Popen` raised, looked into."""
    number = (error.errno or 0) if isinstance(error, OSError) else 0
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return StartError(_problem(error, program, folder), program, folder, reason, number)


def _problem(error: OSError | ValueError, program: str, folder: Path) -> StartProblem:
    if isinstance(error, ValueError):
        return StartProblem.NUL_CHARACTER if "null byte" in str(error) else StartProblem.UNUSABLE_TEXT
    if error.errno == errno.E2BIG:
        return StartProblem.TOO_LONG
    if not folder.is_dir():
        return StartProblem.FOLDER_GONE
    if error.errno == errno.ENOEXEC:
        return StartProblem.NOT_A_PROGRAM
    if error.errno != errno.ENOENT:
        return StartProblem.REFUSED_BY_SYSTEM
    if not Path(program).exists():
        return StartProblem.PROGRAM_NOT_FOUND
    return StartProblem.WINDOWS_LINE_END if has_windows_line_end(Path(program)) else StartProblem.INTERPRETER_NOT_FOUND


def has_windows_line_end(script: Path) -> bool:
    """Whether its line `#!` ends with CR LF: no interpreter has such a name."""
    try:
        with open(open_regular(script), "rb") as file:
            first = file.readline(4096)
    except OSError:
        return False
    return first.startswith(b"#!") and first.rstrip(b"\n").endswith(b"\r")


def _words(problem: StartProblem, program: str, folder: Path, reason: str) -> tuple[str, str]:
    """(message, hint)."""
    if problem in (StartProblem.NUL_CHARACTER, StartProblem.UNUSABLE_TEXT):
        return f"cannot run it: {reason}", "a command cannot hold a NUL character"
    if problem is StartProblem.TOO_LONG:
        return "cannot run it: the command is too long", "write it to a file and run that"
    if problem is StartProblem.FOLDER_GONE:
        return f"cannot run it: the folder {folder} is gone", ""
    return f"cannot start {program}: {reason}", ""

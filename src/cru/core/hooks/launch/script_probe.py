"""What a file that stands at a command's place is: decided by its first bytes, as Crush does, not by its mode."""

from __future__ import annotations

import errno
import os
import stat

from msgspec import Struct

from cru.core.hooks.errors import BadScript

WINDOW = 128
MAGIC = (
    b"MZ", b"\x7fELF", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe",
)  # fmt: skip
"""Windows, Linux, the kinds of macOS."""
REFUSED = {
    errno.EISDIR: "is a directory",
    errno.EACCES: "permission denied",
    errno.ELOOP: "too many levels of symbolic links",
}
CANNOT_RUN, NOT_FOUND = 126, 127


class Shebang(Struct, frozen=True):
    """The interpreter that a script names.

    program: a path, or a name for the PATH
    as_kernel: whether the kernel makes the same of the line
    """

    program: str
    args: tuple[str, ...] = ()
    as_kernel: bool = True


def is_path(word: str, windows: bool = False) -> bool:
    """Whether a command's first word names a file, not a program on the PATH."""
    if word.startswith(("./", "../", "/")):
        return True
    drive = len(word) >= 3 and word[0].isascii() and word[0].isalpha() and word[1] == ":" and word[2] in "\\/"
    return windows and (drive or word.startswith("\\"))


def is_binary(head: bytes) -> bool:
    return b"\0" in head or head.startswith(MAGIC)


def read_shebang(head: bytes) -> Shebang:
    """Read the line behind `#!`. Raises BadScript.

    What follows the interpreter is one argument, also behind `env NAME`; only `env -S` splits it.
    """
    first = head[2:].partition(b"\n")[0]
    line = first.rstrip(b"\r").lstrip(b" \t").decode("utf-8", "surrogateescape")
    if not line:
        raise BadScript("empty shebang")
    program, rest = _cut(line)
    clean = not first.endswith(b"\r") and program.startswith("/")
    if os.path.basename(program) != "env":
        return Shebang(program, (rest,) if rest else (), clean)
    if not rest.startswith("-"):
        name, rest = _cut(rest)
        if not name:
            raise BadScript("env: missing program name")
        return Shebang(name, (rest,) if rest else (), clean and not rest)
    flag, rest = _cut(rest)
    if flag != "-S":
        raise BadScript(f"unsupported env flag: {flag}")
    if not rest:
        raise BadScript("env -S requires a program")
    name, *args = rest.split()
    return Shebang(name, tuple(args), clean)


def _cut(text: str) -> tuple[str, str]:
    """The first word, and the rest without blanks before it."""
    word, *rest = text.split(None, 1) or ("",)
    return word, rest[0] if rest else ""


def find_interpreter_words(word: str, file: str, shell: str) -> tuple[str, ...]:
    """The words that must stand before a path so that it runs whatever its mode and its line ends; () if it runs as it is, or if
    nobody can run it and the shell is to say so. Raises BadScript with what to say instead.

    `word` is the path as written, `file` where it lies, `shell` the program that runs what has no interpreter of its own.
    """
    head = _head(word, file)
    if head is None or (head and not head.startswith(b"#!") and is_binary(head)):
        return ()
    if not head:
        return ("true",)
    if not head.startswith(b"#!"):
        return () if file.endswith(".ps1") else (shell,)
    line = read_shebang(head)
    program, is_there = _interpreter(line.program)
    if is_there and line.as_kernel and os.access(file, os.X_OK):
        return ()
    return (program, *line.args)


def _head(word: str, file: str) -> bytes | None:
    """The first bytes; None for what is missing or no file at all, and for a program that may be run but not read."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR) or (error.errno == errno.EACCES and os.access(file, os.X_OK)):
            return None
        raise BadScript(REFUSED.get(error.errno or 0, str(error.strerror).lower())) from error
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise BadScript(REFUSED[errno.EISDIR])
        return os.read(fd, WINDOW) if stat.S_ISREG(mode) else None
    finally:
        os.close(fd)


def _interpreter(program: str) -> tuple[str, bool]:
    """What to run, and whether it is what the line says: only a path that is truly missing gives way to its name on the PATH."""
    if "/" not in program:
        return program, True
    try:
        os.stat(program)
    except FileNotFoundError:
        return os.path.basename(program), False
    except OSError as error:
        raise BadScript(f"{program}: {str(error.strerror).lower()}") from error
    return program, True

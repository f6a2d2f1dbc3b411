"""The `cru` command, stage one: what can be answered without loading anything is answered here."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # see flags.py
if TYPE_CHECKING:
    from types import FrameType


def main() -> None:
    """Entry point of the console script. Except for `--version` it leaves the process with the run's exit status."""
    _leave_at_interrupts()
    argv = sys.argv[1:]
    if argv == ["--version"]:
        from cru import __version__

        print(f"cru {__version__}")
        return
    if argv in (["--help"], ["-h"]):
        _print_help()
    import gc

    gc.disable()  # nothing that is loaded at start becomes garbage; console.end_startup turns it on again
    try:
        from cru.faces.cli.entry import run_and_exit

        run_and_exit(argv)
    except KeyboardInterrupt:  # of the chat's first prompt, while it leaves
        _leave()


def _print_help() -> None:
    from cru.faces.cli.console import leave, prepare_streams
    from cru.faces.cli.flags import overview

    prepare_streams()
    print(overview())
    leave(0)


def _leave_at_interrupts() -> None:
    """Until a session listens to Ctrl-C, it ends the process at once. A KeyboardInterrupt would be raised in the middle of whatever is
    imported, and libraries lose it: msgspec goes on without `datetime`, and its next decoder is a segmentation fault."""
    import _signal as signal  # type: ignore[import-not-found]  # what `signal` is made of; that one loads `enum`

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int = 0, frame: FrameType | None = None) -> None:
    import os

    if keyboard := sys.modules.get("cru.faces.cli.terminal.keyboard"):
        keyboard.restore_mode()
    os.write(2, b"cru: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()

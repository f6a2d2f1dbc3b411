"""The `cru` command, stage one: what can be answered without loading anything is answered here."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the console script. Otherwise than for `--version` it leaves the process with the run's exit status."""
    argv = sys.argv[1:]
    if argv == ["--version"]:
        from cru import __version__

        print(f"cru {__version__}")
        return
    import gc

    gc.disable()  # nothing that is loaded at start becomes garbage; console.end_startup turns it on again
    try:
        from cru.faces.cli.entry import run_and_exit

        run_and_exit(argv)
    except KeyboardInterrupt:  # before the start can say so, or while it leaves
        import os

        os.write(2, b"cru: interrupted\n")
        os._exit(130)


if __name__ == "__main__":
    main()

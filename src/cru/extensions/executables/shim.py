"""The command `chibi` that programs find first on their PATH: it is the cru that started them."""

from __future__ import annotations

import shlex
import sys
from hashlib import sha256
from pathlib import Path

SOURCE = '#!/bin/sh\nexec {python} -P -m cru.faces.cli.chibi "$@"\n'


def install_shim(home: Path) -> Path:
    """The folder that it lies in, one for each interpreter that cru is run with. Raises OSError."""
    source = SOURCE.format(python=shlex.quote(sys.executable)).encode()
    command = home / "cache" / "bin" / sha256(source).hexdigest()[:12] / "chibi"
    if not command.exists():
        from cru.files import atomic

        atomic.replace_file(command, source, new_mode=0o755, make_folders=True)
    return command.parent

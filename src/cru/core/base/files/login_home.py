"""The home folder that the system has for who runs this, whatever HOME says."""

from __future__ import annotations

import os


def login_home() -> str:
    """Absolute; "/" for a user whom the system does not know."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir or "/"
    except KeyError:
        return "/"

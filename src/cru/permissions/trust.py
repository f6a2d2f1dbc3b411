"""Which project files a person has accepted, by content: a changed file is a stranger again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cru.permissions.errors import NotStored
from cru.permissions.store import TrustFile, load, update

if TYPE_CHECKING:
    from pathlib import Path

    from cru.config.errors import Problem


class Trust:
    """The accepted files of one home folder; `problems` says what was wrong with trust.json."""

    def __init__(self, path: Path) -> None:
        self.problems: list[Problem] = []
        self._path = path

    def is_trusted(self, path: Path, content: bytes | str | None = None) -> bool:
        """Whether this file was accepted with this content. Pass what was read, so that what is judged is what is used; without
        it the file is read here. A missing file is not trusted."""
        known, problem = load(self._path, TrustFile)
        if problem is not None:
            self.problems.append(problem)
        digest = known.files.get(_key(path))
        if digest is None:
            return False
        try:
            return _digest(path.read_bytes() if content is None else content) == digest
        except OSError:
            return False

    def trust(self, path: Path, content: bytes | str | None = None) -> None:
        """Accept a file with the content that the person has seen. Raises NotStored if it cannot be read or noted."""
        try:
            digest = _digest(path.read_bytes() if content is None else content)
        except OSError as error:
            raise NotStored(f"{path} cannot be read: {error.strerror}") from error
        update(self._path, TrustFile, lambda old: TrustFile(files={**old.files, _key(path): digest}))

    def revoke(self, path: Path) -> bool:
        """Forget a file; False if it was not accepted. Raises NotStored."""
        key = _key(path)
        known, _ = load(self._path, TrustFile)
        if key not in known.files:
            return False
        update(self._path, TrustFile, lambda old: TrustFile(files={k: v for k, v in old.files.items() if k != key}))
        return True


def _key(path: Path) -> str:
    return os.path.realpath(path)


def _digest(content: bytes | str) -> str:
    from hashlib import sha256

    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()

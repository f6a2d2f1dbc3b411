"""Which project files and folders a person has accepted, by content: what has changed is a stranger again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cru.core.guard import NotStored
from cru.core.guard.trust.stored import HookJudgement, TrustFile, load_stored, update_stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cru.core.base.config.layers import SettingsProblem
    from cru.core.guard.trust.snapshot import Snapshot


class TrustStore:
    """What was accepted, by one home folder; `problems` says what was wrong with trust.json.

    Of an accepted folder a copy is kept in `trusted/` beside trust.json, and the copy is what is used: nothing can change between
    the look at a folder and its use, however late."""

    def __init__(self, path: Path) -> None:
        self.problems: list[SettingsProblem] = []
        self._path = path

    def is_trusted(self, path: Path, content: bytes | str | None = None) -> bool:
        """Whether this file was accepted with this content. Pass what was read, so that what is judged is what is used; without
        it the file is read here. A missing file is not trusted."""
        digest = self._digest_of(path)
        if digest is None:
            return False
        try:
            return _digest(path.read_bytes() if content is None else content) == digest
        except OSError:
            return False

    def is_known(self, path: Path) -> bool:
        """Whether this file or folder was accepted with any content."""
        return self._digest_of(path) is not None

    def files_below(self, folder: Path) -> list[Path]:
        """What was accepted below a folder, with any content, whether it is there or not."""
        inside = _key(folder).rstrip(os.sep) + os.sep
        return [Path(key) for key in self._load().files if key.startswith(inside)]

    def trust(self, path: Path, content: bytes | str | None = None) -> None:
        """Accept a file with the content that the person has snapshot. Raises NotStored if it cannot be read or noted."""
        try:
            digest = _digest(path.read_bytes() if content is None else content)
        except OSError as error:
            raise NotStored(f"{path} cannot be read: {error.strerror}") from error
        update_stored(self._path, TrustFile, lambda old: replace(old, files={**old.files, _key(path): digest}))

    def trust_folder(self, snapshot: Snapshot) -> None:
        """Accept a folder as the person has seen it, and keep the copy. Raises NotStored."""
        import shutil

        listing = snapshot.listing
        copy = self._copy_path(snapshot.folder, _digest(listing))
        try:
            shutil.rmtree(copy.parent, ignore_errors=True)  # copies of what was accepted before
            snapshot.copy_to(copy)
        except OSError as error:
            raise NotStored(f"{copy} cannot be written: {error.strerror}", "check the folder's permissions") from error
        self.trust(snapshot.folder, listing)

    def trusted_copy(self, folder: Path, inside: Path) -> Path | None:
        """The copy of a folder that is still as it was accepted, None if it is not. Raises NotAccepted if it cannot be judged."""
        if not self.is_known(folder):
            return None
        from cru.core.guard.trust.snapshot import take_snapshot

        listing = take_snapshot(folder, inside).listing
        copy = self._copy_path(folder, _digest(listing))
        return copy if self.is_trusted(folder, listing) and copy.is_dir() else None

    def revoke(self, path: Path) -> bool:
        """Forget a file or folder; False if it was not accepted. Raises NotStored."""
        import shutil

        key = _key(path)
        if not self.is_known(path):
            return False
        update_stored(
            self._path, TrustFile, lambda old: replace(old, files={k: v for k, v in old.files.items() if k != key})
        )
        shutil.rmtree(self._copy_path(path, "").parent, ignore_errors=True)
        return True

    def stamp(self) -> tuple[int, ...]:
        """What tells that trust.json has changed; () if there is none."""
        try:
            status = os.stat(self._path)
        except OSError:
            return ()
        return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def hook_judgements(self) -> Mapping[str, HookJudgement]:
        """What was decided about hooks, by fingerprint."""
        return self._load().hooks

    def judge_hooks(self, judgements: Mapping[str, HookJudgement]) -> None:
        """Note what a person decided about hooks, the newest last. Raises NotStored."""

        def with_judgements(old: TrustFile) -> TrustFile:
            return replace(
                old,
                hooks={
                    **{key: judgement for key, judgement in old.hooks.items() if key not in judgements},
                    **judgements,
                },
            )

        update_stored(self._path, TrustFile, with_judgements)

    def forget_hooks(self, root: Path) -> int:
        """Forget what was decided about the hooks of a project; how many hooks that were. Raises NotStored."""
        inside = _key(root).rstrip(os.sep) + os.sep
        forgotten = {key: entry for key, entry in self.hook_judgements().items() if entry.file.startswith(inside)}
        if forgotten:
            update_stored(
                self._path,
                TrustFile,
                lambda old: replace(old, hooks={k: v for k, v in old.hooks.items() if k not in forgotten}),
            )
        return len({entry.key or (entry.file, entry.what) for entry in forgotten.values()})  # some were judged twice

    def _digest_of(self, path: Path) -> str | None:
        return self._load().files.get(_key(path))

    def _load(self) -> TrustFile:
        known, problem = load_stored(self._path, TrustFile)
        if problem is not None:
            self.problems.append(problem)
        return known

    def _copy_path(self, folder: Path, digest: str) -> Path:
        """`trusted/PROJECT-…/DIGEST`: a person who reads it in a message sees which project it is."""
        key = _key(folder)
        project = os.path.basename(os.path.dirname(os.path.dirname(key)))
        return self._path.parent / "trusted" / f"{project}-{_digest(os.fsencode(key))[:8]}" / (digest[:16] or "none")


def _key(path: Path) -> str:
    return os.path.realpath(path)


def _digest(content: bytes | str) -> str:
    from hashlib import sha256

    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()

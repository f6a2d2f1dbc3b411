"""What confined here when it was last tried, and what a person was told of it: a start need not try again what worked.

It is for what is said, and for what is a must from then on. Before the first command is confined it is really tried
(`cru.core.guard.sandbox.detect`).
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files import read_json
from cru.core.guard.sandbox.backends import Detection, find_backend_program

CACHE = Path("cache", "sandbox.json")
MOST = 1 << 16
"""Bytes of the file."""
MOST_PROJECTS = 100
"""That are remembered beside the present one."""


class DetectionRecord(Struct, frozen=True):
    """`cache/sandbox.json`.

    tried: what was tried, as it was then
    detection: what came of it
    last_notice: the last of what a person is told once
    told_in: the last of what they are told once in each project, by its root
    """

    tried: str = ""
    detection: Detection = Detection()
    last_notice: str = ""
    told_in: dict[str, str] = {}


class DetectionMemory:
    """Of one home folder. env: what has the PATH; is_kept: whether anything is written"""

    def __init__(self, home: Path, env: Mapping[str, str], *, is_kept: bool) -> None:
        self._file, self._path, self._is_kept = home / CACHE, env.get("PATH", os.defpath), is_kept
        self._record = self._read()

    def recall(self) -> Detection | None:
        """Return what came of it when this program was last tried; None if it was not, or if something has changed since."""
        return self._record.detection if self._record.tried and self._record.tried == self._identify() else None

    def has_worked(self) -> bool:
        """Return whether this program has confined something on this machine since its start."""
        detection = self.recall()
        return detection is not None and bool(detection.backend)

    def keep(self, detection: Detection) -> None:
        """Record what came of it. What worked stays known: that it does not now is no reason to do without.

        What did not work is known, too, so that a start need not try it again: the first command does.
        """
        if detection.backend or not self.has_worked():
            self._write(replace(self._record, tried=self._identify(), detection=detection))

    def is_news(self, text: str) -> bool:
        """Whether a person has not been told this yet; from now on they have."""
        is_new = text != self._record.last_notice
        self._write(replace(self._record, last_notice=text))
        return is_new

    def is_news_in(self, project: str, text: str) -> bool:
        """Whether a person has not been told this yet in the project of that root; from now on they have."""
        is_new = self._record.told_in.get(project) != text
        others = {root: last for root, last in self._record.told_in.items() if root != project}
        kept = dict(list(others.items())[-MOST_PROJECTS:])
        self._write(replace(self._record, told_in={**kept, project: text}))
        return is_new

    def _identify(self) -> str:
        """The program with its age, the user and the start of the machine: rights of namespaces change with these."""
        program = find_backend_program(self._path)
        try:
            status = os.stat(program) if program is not None else None
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip() if sys.platform == "linux" else ""
        except OSError:  # it is gone, or nobody may look: it is tried
            return ""
        state = f"{status.st_ino} {status.st_size} {status.st_mtime_ns}" if status is not None else "missing"
        return f"{program} {state} {os.getuid()} {boot}"

    def _read(self) -> DetectionRecord:
        try:
            return read_json(self._file, DetectionRecord, limit_bytes=MOST)
        except (OSError, msgspec.DecodeError):  # none yet, or not understood: it is made anew
            return DetectionRecord()

    def _write(self, record: DetectionRecord) -> None:
        if record == self._record:
            return
        self._record = record
        if not self._is_kept:
            return
        from cru.core.base.files.atomic import replace_file

        try:
            replace_file(self._file, msgspec.json.encode(record), make_folders=True, follow=False)
        except (OSError, UnicodeEncodeError):
            pass  # it is tried, and told, once more

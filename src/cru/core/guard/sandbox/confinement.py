"""The sandbox of one session: found when the first command needs it, one /tmp for all of its commands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cru.core.base.files.regular import make_private_folder
from cru.core.base.process.confined import IN_SANDBOX, PreparedCommand, ProjectProgram, describe_put_aside
from cru.core.conversations.home import private_parents
from cru.core.conversations.private import HeldFolder
from cru.core.guard.rules.outside_runs import OutsideRuns
from cru.core.guard.rules.paths import PathRoots
from cru.core.guard.sandbox import SandboxSettings
from cru.core.guard.sandbox.backends import (
    BUBBLEWRAP,
    Detection,
    describe_failure,
    describe_limits,
    describe_missing,
    describe_network,
)
from cru.core.guard.sandbox.caches import SessionCaches
from cru.core.guard.sandbox.detect import CallFilter, command_line, detect, with_variables
from cru.core.guard.sandbox.guard_records import GuardState, RecordedGuards, runs_elsewhere
from cru.core.guard.sandbox.own_places import agent_sockets, session_folders, writable_folders
from cru.core.guard.sandbox.planted import changed_guides, is_accepted, look, look_at_guides
from cru.core.guard.sandbox.profile import Profile, make_profile
from cru.core.guard.sandbox.programs import runtime_paths
from cru.core.guard.sandbox.refusals import looks_refused
from cru.core.guard.sandbox.repositories import find_risks

if TYPE_CHECKING:
    from cru.core.guard.sandbox.proxy import HostProxy

MUCH_MEMORY = 2 << 30
"""Bytes that are free."""
MOST_IDLE = 4
"""Records of commands that have ended which are kept for the next ones."""
NO_RETRIES = {"npm_config_fetch_retries": "0", "PIP_RETRIES": "0", "CARGO_NET_RETRY": "0"}
"""What keeps package managers from trying for a minute where there is no network."""


class SessionSandbox:
    """Confines the commands of a session, its sub-agents' too, and what its project brings. warn: tells the person; readable: files in
    hidden folders that commands may read; outside: runs outside of it; accepted: files that cru's own tools have written, with the digests
    of their contents; report: is told what confines here, before the first command does; has_worked: whether it has before, on this
    machine since its start"""

    def __init__(
        self,
        settings: SandboxSettings,
        env: Mapping[str, str],
        warn: Callable[[str], None],
        readable: Sequence[str] = (),
        outside: OutsideRuns | None = None,
        accepted: dict[str, bytes] | None = None,
        report: Callable[[Detection], None] | None = None,
        has_worked: Callable[[], bool] = lambda: False,
    ) -> None:
        self._settings = settings
        self._env = env
        self._warn = warn
        self._readable = readable
        self._report = report or self._tell
        self._has_worked = has_worked
        self._accepted = {} if accepted is None else accepted
        self._temporary: HeldFolder | None = None
        self._outside = outside or OutsideRuns()
        self._memory: HeldFolder | None = None
        self._is_told = False
        self._count = 0
        self._caches: SessionCaches | None = None
        self._proxies: set[HostProxy] = set()
        self._closing: set[asyncio.Future[None]] = set()
        self._records: set[RecordedGuards] = set()
        self._idle_records: list[RecordedGuards] = []
        self._before: list[GuardState] = []
        """What each command that runs must not change, as it was before."""
        self._has_unrecorded = self._has_told_person = False

    async def find(self) -> Detection:
        """What confines here. Raises SandboxUnavailable if a sandbox is demanded, or has worked before, and nothing confines."""
        detection = await detect(self._env)
        if not detection.backend and (self._settings.mode == "on" or self._has_worked()):
            raise describe_failure(detection, was_demanded=self._settings.mode == "on")
        self._outside.is_confined = bool(detection.backend)
        if not self._is_told:
            self._is_told = True
            self._report(detection)
        return detection

    def _tell(self, detection: Detection) -> None:
        if not detection.backend:
            self._warn(describe_missing(detection))

    async def confine(
        self, places: PathRoots, argv: tuple[str, ...], *, outlives_us: bool = False
    ) -> PreparedCommand | None:
        """What runs `argv` as the agent at these places may; None: nothing confines here. Raises SandboxUnavailable."""
        detection = await self.find()
        if not detection.backend:
            return None
        profile = self._profile(places, self._readable)
        return await self._confined(detection, profile, places, argv, self._tell_model, outlives_us=outlives_us)

    async def confine_project(self, places: PathRoots, program: ProjectProgram) -> PreparedCommand | None:
        """The same for what a project brings. Raises SandboxUnavailable."""
        detection = await self.find()
        if not detection.backend:
            return None
        root = os.path.realpath(program.root or places.root)
        if root not in places.roots:  # a sub-agent's copy of the project
            places = replace(places, folders=(*places.folders, root))
        profile = replace(
            self._profile(places, program.readable, program.writable),
            folder=program.cwd,
        )
        return await self._confined(detection, profile, places, program.argv, self._tell_person)

    def _profile(self, places: PathRoots, readable: Sequence[str], writable: Sequence[str] = ()) -> Profile:
        """Raises OSError."""
        opened = (*places.roots, *writable_folders(self._settings, places), *runtime_paths())
        own = session_folders(self._env, opened)
        for path in own:  # what is not there cannot be hidden
            os.makedirs(path, mode=0o700, exist_ok=True)
        hidden = [*agent_sockets(self._env, places.user_home), *own]
        search_path = self._env.get("PATH", os.defpath)
        return make_profile(places, self._settings, self._folder("tmp"), readable, writable, hidden, search_path)

    async def _lend_caches(
        self, detection: Detection, profile: Profile, places: PathRoots
    ) -> tuple[Profile, Callable[[], None]]:
        """The profile with caches of package managers, and what gives them back. Raises OSError."""
        profile, give_back = await self._session_caches(detection).lend(profile, places)
        if not self._settings.reaches_network and not self._settings.hosts:
            retries = [(name, value) for name, value in NO_RETRIES.items() if name not in self._env]
            profile = replace(profile, variables=(*profile.variables, *retries))
        return profile, give_back

    def runs_elsewhere(self, places: PathRoots) -> bool:
        """Whether a confined program of another session, or without one, could change guards of these places."""
        own = str(self._temporary.path) if self._temporary is not None else ""
        return runs_elsewhere(places.home, places.roots, own)

    def accept(self, path: str, digest: bytes) -> None:
        """cru itself is about to write a file, with somebody's leave: it stays where it is."""
        self._accepted[path] = digest
        for record in self._records:
            record.accept(path, digest)

    async def _confined(
        self,
        detection: Detection,
        profile: Profile,
        places: PathRoots,
        argv: tuple[str, ...],
        describe: Callable[[], str],
        *,
        outlives_us: bool = False,
    ) -> PreparedCommand:
        give_back, proxy = _nothing, None
        if not outlives_us:  # what cru lends ends with it
            profile, give_back = await self._lend_caches(detection, profile, places)
            profile, proxy = self._lend_proxy(detection, profile)
        command = " ".join(argv[2 if argv[1:2] == ("-c",) else 0 :]).strip()
        await self._outside.wait()
        profile, before = self._look(profile)
        guides = look_at_guides(profile.trees)
        record = self._record_guards(places.home, before, is_needed=outlives_us)
        end = self._outside.begin(command)

        call_filter = CallFilter(detection)

        def settle() -> list[str]:
            call_filter.close()
            if proxy is not None:
                self._close_proxy(proxy)
            give_back()
            self._tell_of_guides(guides)
            return self._settle(before, record, end, is_told=describe == self._tell_person)

        words = command_line(detection, profile, argv, outlives_us=outlives_us, call_filter=call_filter.descriptor)
        explain = partial(self._explain, proxy, command, describe)
        outlive = partial(self._outlive, record, end, call_filter)
        has_monitor = detection.backend == BUBBLEWRAP
        return PreparedCommand(
            words, explain, settle, has_monitor, outlive, with_variables(detection), descriptors=call_filter.descriptors
        )

    def _look(self, profile: Profile) -> tuple[Profile, GuardState]:
        """What is at the places of guards that are not there, and dangerous in repositories. What a command that still runs has put there
        counts as nothing: it goes when that one ends, and a mount would miss it."""
        planted = {
            path: state
            for before in self._before
            for path, state in before.places.items()
            if path in profile.read_only and not is_accepted(path, self._accepted)
        }
        if planted:
            kept = tuple(path for path in profile.read_only if path not in planted)
            profile = replace(profile, read_only=kept, absent=(*profile.absent, *planted))
        risks = find_risks(profile.trees, profile.git_folders)
        for before in self._before:
            risks = before.without_new(risks)
        before = GuardState({**look(profile.absent), **planted}, profile.trees, profile.git_folders, risks)
        self._before.append(before)
        return profile, before

    def _explain(
        self, proxy: HostProxy | None, command: str, describe: Callable[[], str], output: str, exit_status: int | None
    ) -> str:
        refused = proxy.describe_refused() if proxy is not None else ""
        is_refused = looks_refused(command, output, exit_status, has_network=self._settings.reaches_network)
        why = describe() if is_refused or (refused and exit_status) else ""
        return ". ".join(filter(None, (refused and f"the sandbox kept it from a host: {refused}", why)))

    def _settle(
        self, before: GuardState, record: RecordedGuards | None, end: Callable[[], None], *, is_told: bool
    ) -> list[str]:
        """Look at what a command has left, and forget the command. Raises OSError."""
        try:
            return self._put_aside(before, is_told=is_told)
        finally:
            with suppress(ValueError):
                self._before.remove(before)
            try:
                self._forget_guards(record)
            finally:
                end()

    def _put_aside(self, before: GuardState, *, is_told: bool) -> list[str]:
        """`is_told`: of what a project brings a person is told with its name."""
        moved = before.settle(self._accepted)
        if moved and not is_told:
            self._warn(f"{describe_put_aside(moved)}: look at them, and remove them or rename what you want to have")
        return moved

    def _tell_of_guides(self, before: dict[str, str]) -> None:
        if changed := changed_guides(before):
            self._warn(
                f"a command changed what agents obey: {', '.join(changed)}; look at it (git diff, git log) before the next session"
            )

    def _record_guards(self, home: str, before: GuardState, *, is_needed: bool) -> RecordedGuards | None:
        """Raises OSError if nobody else is left to look."""
        try:
            record = self._resume_record(home, before) or RecordedGuards(home, self._folder(""), before, self._accepted)
        except OSError as error:
            if is_needed:
                raise
            if not self._has_unrecorded:
                self._has_unrecorded = True
                self._warn(f"if this run is killed, what its commands must not make stays: {error}")
            return None
        self._records.add(record)
        return record

    def _outlive(
        self, record: RecordedGuards | None, end: Callable[[], None], call_filter: CallFilter, pid: int
    ) -> None:
        """Its /tmp and its record, which says that it runs, stay as long as it does. Raises OSError."""
        call_filter.close()
        assert self._temporary is not None
        self._temporary.keep_for(pid)
        if record is not None:
            record.outlive(pid)
            end()

    def _resume_record(self, home: str, before: GuardState) -> RecordedGuards | None:
        """Return the record of an earlier command that says the same. Raises OSError."""
        for record in self._idle_records:
            if record.resume(home, before, self._accepted):
                self._idle_records.remove(record)
                return record
        return None

    def _forget_guards(self, record: RecordedGuards | None) -> None:
        if record is None:
            return
        self._records.discard(record)
        if record.rest():
            self._idle_records.append(record)
        while len(self._idle_records) > MOST_IDLE:
            self._idle_records.pop(0).remove()

    def _session_caches(self, detection: Detection) -> SessionCaches:
        """Raises OSError."""
        if self._caches is None:
            self._caches = SessionCaches(self._cache_folders(), detection, self._env)
        return self._caches

    def _cache_folders(self) -> list[str]:
        """In memory, if there is much and nobody has chosen a place: when a command ends, the kernel writes out all that waits for the disk
        of a layer. Raises OSError."""
        folders = [self._folder("caches")]
        in_memory, *others = private_parents(self._env)
        with suppress(OSError):
            space = os.statvfs(os.path.dirname(in_memory))
            if others and space.f_bavail * space.f_frsize >= MUCH_MEMORY:
                self._memory = HeldFolder([in_memory])
                folders.insert(0, str(self._memory.path))
        return folders

    def _lend_proxy(self, detection: Detection, profile: Profile) -> tuple[Profile, HostProxy | None]:
        """Raises OSError."""
        if not self._settings.hosts or detection.backend != BUBBLEWRAP:
            return profile, None
        proxy = self._open_proxy()
        return replace(profile, proxy=proxy.path, forwards=proxy.forwards), proxy

    def _open_proxy(self) -> HostProxy:
        """Raises OSError."""
        from cru.core.guard.sandbox.hosts import parse_rules
        from cru.core.guard.sandbox.proxy import HostProxy

        self._count += 1
        proxy = HostProxy(self._folder("proxies"), str(self._count), parse_rules(self._settings.hosts))
        self._proxies.add(proxy)
        return proxy

    def _close_proxy(self, proxy: HostProxy) -> None:
        if proxy in self._proxies:
            self._proxies.remove(proxy)
            proxy.close()
            closing = asyncio.ensure_future(proxy.finish())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _folder(self, name: str) -> str:
        """A folder for the session. Raises OSError."""
        if self._temporary is None:
            self._temporary = HeldFolder(private_parents(self._env)[::-1])  # on a disk rather than in memory
        folder = os.path.join(self._temporary.path, name).rstrip("/")
        make_private_folder(folder)
        return folder

    def _tell_model(self) -> str:
        """What the model is told of a command that it looks as if the sandbox has hindered."""
        return (
            f"{IN_SANDBOX}, as its description says, with {describe_network(self._settings)}. If that is why it failed, and it has to "
            "be done, `outside_sandbox`: true asks a person for that"
        )

    def _tell_person(self) -> str:
        """The same of what a project brings, at length once."""
        if self._has_told_person:
            return "it ran in the sandbox"
        self._has_told_person = True
        return (
            f"it ran in the sandbox, as what a project brings does: {describe_limits(self._settings)}. One that needs more goes into your "
            "own files; `writable`, `hosts` and `project` in [sandbox] of config.toml say what holds for all (docs/sandbox.md)"
        )

    async def close(self) -> None:
        """End what serves it, and remove /tmp."""
        for proxy in tuple(self._proxies):
            self._close_proxy(proxy)
        while self._idle_records:
            self._idle_records.pop().remove()
        await asyncio.gather(*self._closing)
        held, self._temporary, self._memory = (self._memory, self._temporary), None, None
        for folder in held:
            if folder is not None and (problem := await asyncio.to_thread(folder.remove)):
                self._warn(problem)


def _nothing() -> None:
    """What gives back nothing."""

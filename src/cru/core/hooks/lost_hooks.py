"""Hooks that were meant to guard and do not: what a run with --strict-hooks does not begin with, what a start tells, and what `cru hooks
check` calls broken or waiting. Here is what the files alone tell; what needs the tools of a session is in report/powerless.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cru.core.base.values.visible import in_a_line, limit_by_file
from cru.core.hooks import HookOptions
from cru.core.hooks.errors import Untrusted
from cru.core.hooks.inventory import HookInventory
from cru.core.hooks.model.entry import HookFileProblem, ProblemKind
from cru.core.hooks.model.status import (
    AWAITING_REVIEW,
    NEVER_RUNNING,
    REVIEW,
    Activation,
    EntryStatus,
    LoadedHooks,
)
from cru.core.hooks.report.powerless import find_powerless
from cru.core.plugins.lost_guards import LossKind, LostGuard

WAITING = (LossKind.AWAITING, LossKind.CHANGED)
"""A person has to look at them."""


def find_lost_hooks(
    inventory: HookInventory, options: HookOptions, tools: Sequence[str] | None = None
) -> list[LostGuard]:
    """Everything that does not guard. tools: names of the tools that are there; None: not known yet, so that only files are looked at."""
    lost = [*_awaiting(inventory.loaded), *find_left_out(inventory, options)]
    if tools is not None:
        lost += find_powerless(inventory.loaded, inventory.dialects, inventory.facts, tools)
    return lost


def require_none(lost: Iterable[LostGuard], plugins: Sequence[LostGuard] = ()) -> None:
    """What --strict-hooks means. Raises Untrusted with all that is lost. plugins: those that would end the run after the hooks"""
    waiting: list[tuple[str, str]] = []
    broken: list[tuple[str, str]] = []
    for guard in lost:
        (waiting if guard.kind in WAITING else broken).append((guard.file, str(guard)))
    lines = limit_by_file(waiting, "cru hooks list") + limit_by_file(broken, "cru hooks check")
    if lines:
        about_plugins = limit_by_file([(guard.file, str(guard)) for guard in plugins], "cru hooks check")
        steps = [f"{REVIEW} shows what awaits trust"] if waiting else []
        steps += ["`cru hooks check` says what is wrong in the files"] if broken else []
        steps += ["`cru trust` shows the plugins"] if any(guard.kind in WAITING for guard in plugins) else []
        raise untrusted([*lines, *about_plugins], "; ".join(steps), "hook and plugin" if plugins else "hook")


def untrusted(lines: list[str], hint: str, what: str = "hook") -> Untrusted:
    """What ends a run with --strict-hooks."""
    listed = "\n".join(f"  {in_a_line(line)}" for line in lines)
    return Untrusted(f"--strict-hooks: not every {what} that is there can run:\n{listed}", hint)


def find_left_out(inventory: HookInventory, options: HookOptions) -> Iterator[LostGuard]:
    """Files and parts of files that cannot be used, and hooks that cru cannot run where they could refuse something."""
    for status in inventory.loaded.of(Activation.BROKEN):
        yield _of_status(LossKind.LEFT_OUT, status, f"the hook is left out: {status.why}")
    for status in _unavailable(inventory, options):
        hint = f"to do without: `cru hooks disable {status.entry.id}`"
        yield _of_status(LossKind.UNAVAILABLE, status, f"this guard does not run: {status.why}", hint)
    for problem in _losses(inventory.loaded):
        yield LostGuard(LossKind.LEFT_OUT, "", str(problem.path), problem.text, problem.hint, problem.line)


def _awaiting(loaded: LoadedHooks) -> Iterator[LostGuard]:
    for status in loaded.of(*AWAITING_REVIEW):
        why = f" ({status.why})" if status.changed else ""
        text = f"{status.entry.label}: {status.state}{why}"
        yield _of_status(LossKind.AWAITING, status, text)
    for missing in loaded.missing:
        yield LostGuard(LossKind.CHANGED, "", missing.file, f"{missing.label}: {missing.why}")


def _of_status(kind: LossKind, status: EntryStatus, text: str, hint: str = "") -> LostGuard:
    entry = status.entry
    return LostGuard(kind, entry.id, str(entry.source.path), text, hint, entry.line)


def _losses(loaded: LoadedHooks) -> list[HookFileProblem]:
    """Files and parts of files that are left out; another program's file that is off is its own affair."""
    off = {status.entry.source.path for status in loaded.of(Activation.NOT_ACCEPTED)}
    return [
        problem
        for problem in loaded.problems
        if problem.kind is ProblemKind.WHOLE_FILE or (problem.loses_hooks and problem.path not in off)
    ]


def _unavailable(inventory: HookInventory, options: HookOptions) -> list[EntryStatus]:
    """Hooks that cru cannot run, at events where they could refuse something."""
    return [
        status
        for status in inventory.loaded.of(*NEVER_RUNNING)
        if (entry := status.entry).enabled
        and inventory.dialects[entry.dialect].can_refuse(entry)
        and (entry.of_project or entry.source.own or entry.dialect in options.dialects)
    ]

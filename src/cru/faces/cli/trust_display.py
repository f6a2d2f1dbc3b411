"""What `cru trust` shows of a project: its settings with what they let happen, the beginning of its plugins, its hooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from cru.core.agents import CardOrigin
from cru.core.agents.discovery import UNTRUSTED, load_cards
from cru.core.base.config.layers import Layer, SettingsProblem
from cru.core.base.values.visible import whole_lines
from cru.core.commands.prompt_files import PromptFileKind
from cru.core.compose import Start, hooks_where
from cru.core.compose.start import card_places, prompt_places
from cru.core.guard.trust.snapshot import Snapshot, SnapshotFile
from cru.core.guard.trust.widening import find_widening
from cru.core.hooks.discovery import find_dialects, stamp_files
from cru.core.hooks.model.status import Activation
from cru.core.turn.parts import EngineSettings
from cru.faces.cli.console import one_line
from cru.faces.cli.flags import Parsed
from cru.faces.cli.hooks.inventory import load_inventory
from cru.faces.cli.run_options import start_of

if TYPE_CHECKING:
    from cru.core.commands.prompt_files.trusted import WideningFile
    from cru.core.hooks.foreign_settings import FileSettings

FIRST_LINES = 5
COLUMNS = 120
FILES_BEGUN = 40
"""Files whose first lines are shown; of the others the size."""


def render_settings(layer: Layer) -> list[str]:
    """The file whole, then what in it lets more happen than before."""
    lines = whole_lines(layer.text.rstrip())
    usual = EngineSettings()
    limits = {
        name: getattr(usual, name) for name in ("fuel", "max_continuations", "max_idle_rounds", "max_nested_runs")
    }
    widening = list(find_widening(layer.data, limits))
    if widening:
        lines += ["", "what lets more happen than without this file:"]
    for item in widening:
        values = item.value if isinstance(item.value, list) else [item.value]
        for value in values:
            text = msgspec.json.encode(value, enc_hook=repr).decode()
            lines.append(
                f"! {layer.place(item.path)}: {'.'.join(item.path)} = {one_line(text, COLUMNS)}: {item.effect}"
            )
    return lines


def render_ignored(problems: Iterable[SettingsProblem]) -> list[str]:
    """Settings that have no effect in a project's file, accepted or not."""
    lines = [f"  {one_line(str(problem), 2 * COLUMNS)}" for problem in problems]
    return ["", "what has no effect, accepted or not:", *lines] if lines else []


def render_plugins(seen: Snapshot, root: Path) -> list[str]:
    """Every file with its size in bytes, and its first lines."""
    count = len(seen.files)
    lines = ["", f"! {'1 file' if count == 1 else f'{count} files'} of plugins: code that runs with your rights"]
    for number, item in enumerate(seen.files):
        program = "  (a program)" if item.kind == "program" else ""
        lines.append(f"{len(item.content):>9}  {one_line(str((seen.folder / item.path).relative_to(root)))}{program}")
        if number < FILES_BEGUN:
            lines += _beginning(item)
    return lines


def _beginning(item: SnapshotFile) -> Iterator[str]:
    if b"\0" in item.content[:1024]:
        yield f"{'':>9}  │ (no text)"
        return
    lines = item.content.decode("utf-8", "replace").splitlines()
    for line in lines[:FIRST_LINES]:
        yield f"{'':>9}  │ {one_line(line, COLUMNS)}"
    if len(lines) > FIRST_LINES:
        yield f"{'':>9}  │ … {len(lines) - FIRST_LINES} more"


def find_foreign(parsed: Parsed) -> list[FileSettings]:
    """Settings of other programs in this project that say more than hooks and refusals."""
    where = hooks_where(start_of(parsed, "default"))
    if not find_dialects(where, stamp_files(where)):
        return []
    files = load_inventory(parsed, tell=False).loaded.settings
    return [(source, settings) for source, settings in files if source.layer == "project" and settings.widens]


def render_foreign(files: Iterable[FileSettings]) -> Iterator[str]:
    """What in them lets more happen than without them."""
    for source, settings in files:
        yield f"\n{source.path} lets more happen than without it:"
        for rule in settings.rules.allow:
            yield f"! allow {one_line(rule, COLUMNS)}"
        for folder in settings.folders:
            yield f"! folder {one_line(folder, COLUMNS)}: counts as part of the project"
        for name, value in settings.env.items():
            yield f"! env {one_line(f'{name}={value}', COLUMNS)}"


class ProjectFile(Struct, frozen=True):
    """A file of the project that is accepted by its content."""

    path: Path
    text: str


def find_cards(start: Start) -> list[ProjectFile]:
    """Agent cards of this project that can be used, or could be once they are accepted."""
    places = card_places(start)
    if not any(origin is CardOrigin.PROJECT and folder.is_dir() for origin, folder in places.folders()):
        return []
    cards = load_cards(places)
    files = []
    for file in cards.read_all():
        if file.card is not None and file.state in UNTRUSTED:
            files.append(ProjectFile(file.path, file.text))
        elif file.card is not None and file.origin is CardOrigin.PROJECT:
            files.append(ProjectFile(file.path, file.path.read_text("utf-8")))
    return files


def render_cards(files: Iterable[ProjectFile], root: Path) -> Iterator[str]:
    """Each card whole: its text speaks to the model of a sub-agent."""
    for file in files:
        yield f"\n! {one_line(str(file.path.relative_to(root)))}: what a sub-agent is told"
        yield from _whole(file.text)


def find_prompt_files(start: Start) -> list[WideningFile]:
    """Commands and skills of this project that do more than inform. Raises NotAccepted."""
    places = prompt_places(start)
    if not any(places.has(kind) for kind in PromptFileKind):
        return []
    from cru.core.commands.prompt_files.trusted import find_widening, to_accept

    return [to_accept(file, places) for file in find_widening(places)]


def render_prompt_files(files: Iterable[WideningFile], root: Path) -> Iterator[str]:
    """Each whole: a command with what it runs and permits, a skill with its scripts."""
    for file in files:
        yield f"\n! {one_line(str(file.path.relative_to(root)))}: it runs commands, permits tools or has scripts"
        for path, text in file.shown:
            if path != file.path:
                yield f"{len(text):>9}  {one_line(str(path.relative_to(file.path)))}"
            yield from _whole(text)


def _whole(text: str) -> Iterator[str]:
    for line in whole_lines(text.rstrip("\n")):
        for start in range(0, max(len(line), 1), COLUMNS):
            yield f"{'':>9}  {'┆' if start else '│'} {line[start : start + COLUMNS]}"


def render_hooks(parsed: Parsed) -> list[str]:
    """The hooks of this project, which are judged one by one."""
    where = hooks_where(start_of(parsed, "default"))
    if not find_dialects(where, stamp_files(where)):
        return []
    waiting = load_inventory(parsed).loaded.of(Activation.UNTRUSTED)
    if not waiting:
        return []
    what = "1 hook of this project awaits" if len(waiting) == 1 else f"{len(waiting)} hooks of this project await"
    lines = ["", f"{what} trust: `cru hooks review`"]
    for status in waiting:
        entry = status.entry
        lines.append(f"{'':>9}  {one_line(entry.where)}: {entry.event}: {one_line(entry.label, COLUMNS)}")
    return lines

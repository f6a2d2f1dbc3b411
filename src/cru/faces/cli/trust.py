"""`cru trust`: show what this project brings, and accept its .cru/config.toml and .cru/plugins as they are now."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from cru.core.agents import CardOrigin
from cru.core.base.config.ignored import drop_forbidden
from cru.core.base.config.layers import Layer, SettingsProblem, merge_layers, read_layer
from cru.core.commands.prompt_files import FileOrigin, PromptFileKind
from cru.core.compose import Start
from cru.core.compose.start import API_TABLES, card_places, prompt_places, settings_structs
from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.guard.trust.snapshot import Snapshot, take_snapshot
from cru.core.plugins.discovery.places import project_folder
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import show
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import start_of
from cru.faces.cli.terminal.keyboard import ask_line
from cru.faces.cli.trust_display import (
    ProjectFile,
    find_cards,
    find_foreign,
    find_prompt_files,
    render_cards,
    render_foreign,
    render_hooks,
    render_ignored,
    render_plugins,
    render_prompt_files,
    render_settings,
)

HELP = """\
cru trust              show this project's .cru/config.toml and .cru/plugins, allow rules and variables in .claude/settings*.json,
                       agent cards, commands and skills that run something, what they let happen (!), and its hooks; then ask
                       whether to accept all but the hooks as it is now; a change asks again
cru trust --show       only show it
cru trust --yes HASH   accept it without a terminal, if it is still what was shown with this HASH
cru trust --revoke     forget it, and what was said about this project's hooks

Hooks of a project are judged one by one: `cru hooks review`.
"""
DIGITS = 12
"""Of the hash that names what was shown."""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("trust", words, help=HELP, switches=("--revoke", "--show"), values=("--yes",))
    if args.show_help():
        return 0
    start = start_of(parsed, "default")
    trust = TrustStore(start.home / "trust.json")
    path = start.root / ".cru" / "config.toml"
    if args.has("--revoke"):
        _revoke(
            trust, path, path.with_name("plugins")
        )  # first: settings that cannot be used must not keep it from being taken back
        _revoke(trust, *(source.path for source, _ in find_foreign(parsed)), *_accepted_cards(start, trust))
        _forget_hooks(trust, start.root)
        return 0
    layer, ignored = _read_settings(path)
    plugins = project_folder(start.home, start.root)
    seen = None if plugins is None else take_snapshot(plugins, start.root)
    hooks = render_hooks(parsed)
    files, shown = _find_files(parsed, start)
    if layer is None and seen is None and not files:
        show("\n".join([f"there is no {path}, and no folder {path.with_name('plugins')} of this project", *hooks]))
        return 1
    digest = _digest(layer, seen, files)
    if not args.has("--yes"):
        _show_all(layer, ignored, seen, start.root, [*shown, *hooks])
    if args.has("--show"):
        show(f"\nto accept this: cru trust, or without a terminal: cru trust --yes {digest}")
        return 0
    if not args.has("--yes") and _is_trusted(trust, path, layer, seen, files):
        show("\nall of this is trusted already; `cru trust --revoke` takes that back")
        return 0
    if not _is_accepted(args.value("--yes", ""), digest):
        show("nothing is accepted")
        return 1
    _accept(trust, path, layer, seen, files)
    return 0


def _find_files(parsed: Parsed, start: Start) -> tuple[list[ProjectFile], list[str]]:
    """What else is to be accepted, and how it is shown: settings of other programs, agent cards, commands and skills."""
    foreign, cards, prompts = find_foreign(parsed), find_cards(start), find_prompt_files(start)
    files = [*(ProjectFile(source.path, source.text) for source, _ in foreign), *cards]
    files += [ProjectFile(file.path, file.content) for file in prompts]
    root = start.root
    return files, [*render_foreign(foreign), *render_cards(cards, root), *render_prompt_files(prompts, root)]


def _is_trusted(
    trust: TrustStore, path: Path, layer: Layer | None, seen: Snapshot | None, files: list[ProjectFile]
) -> bool:
    """Whether all that is shown was accepted as it is."""
    return (
        (layer is None or trust.is_trusted(path, layer.text))
        and (seen is None or trust.trusted_copy(seen.folder, path.parent.parent) is not None)
        and all(trust.is_trusted(file.path, file.text) for file in files)
    )


def _digest(layer: Layer | None, seen: Snapshot | None, files: list[ProjectFile]) -> str:
    """Names the bytes that are shown, and accepted."""
    settings = layer.text.encode("utf-8", "surrogatepass") if layer is not None else b""
    listing = seen.listing if seen is not None else b""
    others = [text.encode("utf-8", "surrogatepass") for file in files for text in (str(file.path), file.text)]
    return sha256(b"".join(b"%d:%s" % (len(part), part) for part in (settings, listing, *others))).hexdigest()[:DIGITS]


def _show_all(
    layer: Layer | None, ignored: Sequence[SettingsProblem], seen: Snapshot | None, root: Path, hooks: list[str]
) -> None:
    lines = [*render_settings(layer), *render_ignored(ignored)] if layer is not None else []
    lines += render_plugins(seen, root) if seen is not None else []
    for line in (*lines, *hooks):
        show(line)


def _is_accepted(word: str, digest: str) -> bool:
    """Whether a person accepts what was shown. Raises UsageProblem where nobody can be asked, and for the hash of something else."""
    if word:
        if word != digest:
            raise UsageProblem(f"what is there now is not what {word} names", "look again: cru trust --show")
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageProblem(
            "nothing is accepted: there is no terminal to answer at",
            f"if you accept what is shown: cru trust --yes {digest}",
        )
    return ask_line("\naccept this? [y/N] ").strip().lower() in ("y", "yes")


def _accept(
    trust: TrustStore, path: Path, layer: Layer | None, seen: Snapshot | None, files: list[ProjectFile]
) -> None:
    """Raises NotStored."""
    if layer is not None:
        trust.trust(path, layer.text)
        show(f"\n{path} is trusted as shown; `cru trust --revoke` takes that back")
    if seen is not None:
        trust.trust_folder(seen)
        show(f"\n{seen.folder} is trusted as it is; `cru trust --revoke` takes that back")
    for file in files:
        trust.trust(file.path, file.text)
        show(f"{file.path} is trusted as it is; `cru trust --revoke` takes that back")


def _read_settings(path: Path) -> tuple[Layer | None, tuple[SettingsProblem, ...]]:
    """The project's file, and what of it has no effect. Raises ConfigError for one that no run could use."""
    layer = read_layer("project", path)
    if layer is None:
        return None, ()
    used, ignored = drop_forbidden(layer)
    merge_layers(settings_structs([used]), [used], tables=API_TABLES)
    return used, ignored


def _revoke(trust: TrustStore, *paths: Path) -> None:
    for path in paths:
        show(f"{path}: {'forgotten' if trust.revoke(path) else 'was not trusted'}")


def _accepted_cards(start: Start, trust: TrustStore) -> list[Path]:
    """Cards that are shown, and whatever was accepted where cards, commands and skills lie: one that is gone, or that another of its name
    hides, may be back."""
    shown = [file.path for file in find_cards(start)]
    folders = [folder for origin, folder in card_places(start).folders() if origin is CardOrigin.PROJECT]
    places = prompt_places(start)
    for kind in PromptFileKind:
        folders += [folder for origin, folder in places.folders(kind) if origin is FileOrigin.PROJECT]
    known = [file for folder in folders for file in trust.files_below(folder)]
    return list({os.path.realpath(file): file for file in (*known, *shown)}.values())


def _forget_hooks(trust: TrustStore, root: Path) -> None:
    hooks = trust.forget_hooks(root)
    if hooks:
        show(f"{'1 hook' if hooks == 1 else f'{hooks} hooks'} of this project: forgotten")

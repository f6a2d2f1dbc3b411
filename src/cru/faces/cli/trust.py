"""`cru trust`: accept this project's .cru/config.toml and .cru/plugins as they are now."""

from __future__ import annotations

from pathlib import Path

from cru.config.layers import read_layer
from cru.extensions.discovery.places import project_folder
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import start_of
from cru.permissions.snapshot import Snapshot, take_snapshot
from cru.permissions.trust import TrustStore

HELP = """\
cru trust            show this project's .cru/config.toml and the files of .cru/plugins, and accept them as they are now;
                     a change of either asks again
cru trust --revoke   forget it, and what was said about this project's hooks

Hooks of a project are judged one by one: `cru hooks review`.
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("trust", words, help=HELP, switches=("--revoke",))
    if args.show_help():
        return 0
    start = start_of(parsed, "default")
    trust = TrustStore(start.home / "trust.json")
    if args.has("--revoke"):
        return _revoke(trust, start.root)
    path = start.root / ".cru" / "config.toml"
    layer = read_layer("project", path)
    plugins = project_folder(start.home, start.root)
    seen = None if plugins is None else take_snapshot(plugins, start.root)
    waiting = _waiting_hooks(parsed)
    if layer is None and seen is None:
        show(f"there is no {path}, and no folder {path.with_name('plugins')} of this project{waiting}")
        return 1
    if layer is not None:
        show(layer.text.rstrip())
        trust.trust(path, layer.text)
        show(f"\n{path} is trusted as shown; `cru trust --revoke` takes that back")
    if seen is not None:
        _show(seen, start.root)
        trust.trust_folder(seen)
        show(f"\n{seen.folder} is trusted as it is; `cru trust --revoke` takes that back")
    if waiting:
        show(waiting.lstrip("\n"))
    return 0


def _waiting_hooks(parsed: Parsed) -> str:
    """What to do about the hooks of this project, which are judged one by one."""
    from cru.app import hooks_where
    from cru.extensions.hooks.discovery import find_dialects, stamp_files

    where = hooks_where(start_of(parsed, "default"))
    if not find_dialects(where, stamp_files(where)):
        return ""
    from cru.extensions.hooks.model.status import Activation
    from cru.faces.cli.hooks.inventory import load_inventory

    number = len(load_inventory(parsed).loaded.of(Activation.UNTRUSTED))
    what = "1 hook of this project awaits" if number == 1 else f"{number} hooks of this project await"
    return f"\n{what} trust: `cru hooks review`" if number else ""


def _show(seen: Snapshot, root: Path) -> None:
    """Every file of the plugins and its size in bytes."""
    for item in seen.files:
        show(f"{len(item.content):>9}  {one_line(str((seen.folder / item.path).relative_to(root)))}")


def _revoke(trust: TrustStore, root: Path) -> int:
    for path in (root / ".cru" / "config.toml", root / ".cru" / "plugins"):
        show(f"{path}: {'forgotten' if trust.revoke(path) else 'was not trusted'}")
    hooks = trust.forget_hooks(root)
    if hooks:
        show(f"{'1 hook' if hooks == 1 else f'{hooks} hooks'} of this project: forgotten")
    return 0

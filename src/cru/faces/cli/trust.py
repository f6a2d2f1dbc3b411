"""`cru trust`: accept this project's .cru/config.toml with its content of now."""

from __future__ import annotations

from cru.config.layers import read_layer
from cru.faces.cli.arguments import Arguments
from cru.faces.cli.flags import Parsed
from cru.faces.cli.place import start_of
from cru.faces.cli.terminal import show
from cru.permissions.trust import Trust

HELP = """\
cru trust            show this project's .cru/config.toml and accept it as it is now; a change asks again
cru trust --revoke   forget it
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = Arguments("trust", words, switches=("--revoke", "--help", "-h"))
    if args.has("--help") or args.has("-h"):
        print(HELP, end="")
        return 0
    start = start_of(parsed, "default")
    path = start.root / ".cru" / "config.toml"
    trust = Trust(start.home / "trust.json")
    if args.has("--revoke"):
        show(f"{path}: {'forgotten' if trust.revoke(path) else 'was not trusted'}")
        return 0
    layer = read_layer("project", path)
    if layer is None:
        show(f"there is no {path}")
        return 1
    show(layer.text.rstrip())
    trust.trust(path, layer.text)
    show(f"\n{path} is trusted as shown; `cru trust --revoke` takes that back")
    return 0

"""`cru models`: how to name a model, and fetching the embedded one."""

from __future__ import annotations

from pathlib import Path

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import say, show
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import home_path

HELP = """\
cru models [list]          providers, how each is named and which key it takes; embedded models that are there
cru models pull smollm2    fetch the embedded model (98 MB) into the home folder's models/
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("models", words, help=HELP, verbs=("list", "pull"), most=2)
    folder = home_path(parsed) / "models"
    if args.show_help():
        return 0
    if args.words in ([], ["list"]):
        return _list(folder)
    if args.words[0] == "list":
        raise args.unknown(args.words[1])
    if len(args.words) != 2:
        raise UsageProblem("`cru models pull` needs a name", "cru models pull smollm2")
    from cru.models.pull import pull

    path = pull(args.words[1], folder, say)
    show(str(path))
    return 0


def _list(folder: Path) -> int:
    from cru.models.providers import PROVIDERS

    for name, provider in PROVIDERS.items():
        key = getattr(provider, "key_variable", "") or "no key"
        show(f"{name + ':MODEL':<24} {key:<20} {getattr(provider, 'base_url', '')}".rstrip())
    for path in sorted(folder.glob("*.gguf")) if folder.is_dir() else []:
        show(f"local:{path.stem:<14} {path}")
    return 0

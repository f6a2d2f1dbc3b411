"""`cru models`: how to name a model, and fetching the embedded one."""

from __future__ import annotations

from pathlib import Path

from cru.core.base.config.closest import did_you_mean
from cru.core.commands.model_facts import render_models
from cru.core.compose import load_settings
from cru.core.events.bus import Bus
from cru.core.events.stamp import Origin
from cru.core.models import ModelSettings
from cru.core.models.providers import PROVIDERS, source_of
from cru.core.models.pull import pull
from cru.core.turn.model_pool import ModelPool, with_keys
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import say, show
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import home_path, start_of

HELP = """\
cru models [list]          providers, how each is named and where its key is from; embedded models that are there
cru models list PROVIDER [WORDS]       the models that it has, with windows and prices as it says them
cru models pull smollm2    fetch the embedded model (98 MB) into the home folder's models/
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("models", words, help=HELP, verbs=("list", "pull"), most=9)
    folder = home_path(parsed) / "models"
    if args.show_help():
        return 0
    if args.words in ([], ["list"]):
        return _list(parsed, folder)
    if args.words[0] == "list":
        return _list_models(parsed, args.words[1].removesuffix(":"), args.words[2:])
    if len(args.words) != 2:
        raise UsageProblem("`cru models pull` needs a name", "cru models pull smollm2")
    path = pull(args.words[1], folder, say)
    show(str(path))
    return 0


def _list(parsed: Parsed, folder: Path) -> int:
    env = with_keys(start_of(parsed, "default").env, folder.parent)
    for name, provider in PROVIDERS.items():
        variable = provider.key_variable
        key = f"{variable or 'no key':<20}"
        if variable and env.get(variable):
            source = source_of(variable, env)
            key = f"{variable} is set" if source == variable else f"key in {source}"
        show(f"{name + ':MODEL':<24} {key:<20} {provider.base_url}".rstrip())
    for path in sorted(folder.glob("*.gguf")) if folder.is_dir() else []:
        show(f"local:{path.stem:<14} {path}")
    return 0


def _list_models(parsed: Parsed, provider: str, words: list[str]) -> int:
    """Raises UsageProblem, ListUnavailable."""
    if provider not in PROVIDERS:
        raise UsageProblem(
            f"there is no provider `{provider}`", did_you_mean(provider, PROVIDERS) or f"one of: {', '.join(PROVIDERS)}"
        )
    start = start_of(parsed, "default")
    settings = load_settings(start)[0].of(ModelSettings)

    async def ask() -> list[str]:
        pool = ModelPool(Bus(Origin("", "")), settings, start.env, start.home / "models")
        try:
            models = await pool.listed(provider)
        finally:
            await pool.close()
        return render_models(provider, (model for model in models if model.has(words)))

    for line in run_interruptible(ask()):
        show(line)
    return 0

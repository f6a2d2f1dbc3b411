"""/model: which model answers, and another one for this context."""

from __future__ import annotations

from collections.abc import Sequence

from cru.commands.context import CommandContext
from cru.commands.errors import NoSuchModel
from cru.config.closest import closest
from cru.config.edit import set_value
from cru.engine.commands import CommandResult
from cru.engine.model_pool import ModelPool
from cru.engine.parts import ResolvedModel
from cru.events.payloads import ConfigChanged


async def model(context: CommandContext, words: str) -> CommandResult:
    """Show it, or change it: kept in the context's local.toml, and used at once. Raises NoModel, NoSuchModel, ContextHeld and
    ConfigError; the old one stays then."""
    return CommandResult(
        await _change(context, words) if words else _describe(context, await context.models.choose(""))
    )


def _describe(context: CommandContext, resolved: ResolvedModel) -> str:
    window = resolved.window or context.session.parts.settings.context_window_limit
    lines = {
        "model": resolved.model.name,
        "provider": resolved.model.provider,
        "because of": context.models.why(resolved),
        "context window": f"{window} tokens"
        if window
        else 'not known: set context_window_limit, or `[models."NAME"] context_window`',
    }
    return "\n".join(f"{f'{key}:':<15} {value}" for key, value in lines.items())


async def _change(context: CommandContext, name: str) -> str:
    parts = context.session.parts
    await check_model(name, context.models)
    path = parts.store.folder / "local.toml"
    with context.session.locked():
        set_value(path, "model", name)
    resolved = await context.models.use(name)
    await parts.bus.dispatch(ConfigChanged("model", name))
    return f"{resolved.model.provider}:{resolved.model.name} answers from now on in {parts.store.name} (kept in {path})"


async def check_model(name: str, models: ModelPool) -> ResolvedModel:
    """A model that is to be kept, checked as far as that goes without asking it anything (/model, -m and -M). Raises NoModel
    and NoSuchModel."""
    from cru.models.probe import require_listed

    _refuse_misspelt(name, models.aliases())
    resolved = await models.check(name)
    await require_listed(resolved.model.provider, resolved.model.name, resolved.base_url)
    return resolved


def _refuse_misspelt(name: str, aliases: Sequence[str]) -> None:
    """A server takes any name; one that is nearly an alias is a slip all the same. Raises NoSuchModel."""
    if ":" in name or name in aliases:
        return
    if near := closest(name, aliases):
        raise NoSuchModel(
            f"there is no model `{name}`", f"did you mean `{near}`? PROVIDER:{name} if it is a model's own name"
        )

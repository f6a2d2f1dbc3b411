"""/model: which model answers, and another one for this context."""

from __future__ import annotations

from collections.abc import Sequence

from cru.core.base.config.closest import closest, is_misprint
from cru.core.base.config.edit import set_value
from cru.core.base.config.layers import ENVIRONMENT, PROJECT
from cru.core.base.config.positions import join_key
from cru.core.commands.context import CommandContext
from cru.core.commands.errors import BadCommand, NoSuchModel
from cru.core.commands.model_facts import ModelFacts, find_facts, render_models
from cru.core.events.payloads import ConfigChanged
from cru.core.models.listing import ListedModel, ListUnavailable
from cru.core.models.probe import require_listed
from cru.core.models.protocol import ModelError
from cru.core.models.providers import COMPATIBLE
from cru.core.turn.commands import CommandResult
from cru.core.turn.model_pool import ModelPool
from cru.core.turn.parts import ResolvedModel, SessionServices

ALL = "--all"
"""Of /model: for all contexts."""
UNKNOWN_WINDOW = 'not known: set context_window_limit, or `[models."NAME"] context_window`'


async def model(context: CommandContext, words: str) -> CommandResult:
    """Show it and what its provider has, or change it: kept in the context's local.toml, with --all in config.toml, and used
    at once. Raises BadCommand, NoModel, NoSuchModel, ListUnavailable, ContextHeld and ConfigError; the old one stays then."""
    names = [word for word in words.split() if word != ALL]
    if names[:1] == ["list"]:
        return CommandResult(await _list(context, names[1:]))
    if len(names) > 1 or (ALL in words.split() and not names):
        raise BadCommand(
            f"/model takes one name, not {words}", "`/model NAME`, `/model NAME --all`, `/model list [words]`"
        )
    if names:
        return CommandResult(await _change(context, names[0], ALL in words.split()))
    return CommandResult(await _describe(context, await context.models.choose("")))


async def _describe(context: CommandContext, resolved: ResolvedModel) -> str:
    provider, name = resolved.model.provider, resolved.model.name
    models: tuple[ListedModel, ...] = ()
    more = ""
    if resolved.base_url and "://" in resolved.base_url:
        try:
            models = await context.models.listed(provider)
            more = f"{len(models)} models at {provider}: `/model list [words]` shows them, `/model NAME` takes another"
        except ListUnavailable as error:
            more = f"which models there are is not known: {error.message}"
    facts = find_facts(context.models, resolved, models)
    window = context.session.parts.settings.context_window_limit
    lines = {
        "model": name,
        "provider": provider,
        "because of": context.models.why(resolved),
        "context window": _describe_window(facts, window),
        "price": facts.price,
    }
    return "\n".join(
        [*(f"{f'{key}:':<15} {value}" for key, value in lines.items() if value), *([more] if more else [])]
    )


def _describe_window(facts: ModelFacts, limit: int) -> str:
    """`limit`: the setting context_window_limit."""
    source = f", {facts.window_source}" if facts.window_source else ""
    if facts.window or limit:
        return f"{facts.window} tokens{source}" if facts.window else f"{limit} tokens"
    return UNKNOWN_WINDOW


async def _list(context: CommandContext, words: list[str]) -> str:
    """What a provider has; a first word `PROVIDER:` names another one than that of the model. Raises NoModel and ListUnavailable."""
    provider = ""
    if words and words[0].endswith(":"):
        provider = words.pop(0)[:-1]
    provider = provider or (await context.models.choose("")).model.provider
    models = await context.models.listed(provider)
    shown = [model for model in models if model.has(words)]
    if not shown:
        return (
            f"{provider} has no model with {' '.join(words)} in its name; it has {len(models)}"
            if models
            else f"{provider} has none"
        )
    return "\n".join(render_models(provider, shown))


async def _change(context: CommandContext, name: str, for_all: bool) -> str:
    parts = context.session.parts
    checked = await check_model(name, context.models)
    window = await _learn_window(context, checked)
    own = parts.store.folder / "local.toml"
    path = parts.store.folder.parent.parent / "config.toml" if for_all else own
    with context.session.locked():
        set_value(path, "model", name)
        if window:
            set_value(path, join_key(("models", checked.model.name, "context_window")), window)
        if for_all and own.exists():
            set_value(own, "model", None)
    resolved = await context.models.use(name)
    await parts.bus.dispatch(ConfigChanged("model", name))
    where = "wherever no other one is set" if for_all else f"in {parts.store.name}"
    more = f", with its window of {window} tokens" if window else ""
    more += _overruled(parts.services) if for_all else ""
    return f"{resolved.model.provider}:{resolved.model.name} answers from now on {where} (kept in {path}){more}"


async def _learn_window(context: CommandContext, resolved: ResolvedModel) -> int:
    """The window of a model that the settings do not have and others know; 0: there is nothing to learn."""
    limit = context.session.parts.settings.context_window_limit
    if resolved.window or limit or resolved.category or "://" not in resolved.base_url:
        return 0
    try:
        listed = await context.models.listed(resolved.model.provider)
    except ListUnavailable:
        return 0  # the check has told it
    window = find_facts(context.models, resolved, listed).window
    if window:
        context.models.set_window(resolved.model.name, window)
    return window


def _overruled(services: SessionServices) -> str:
    """What says another model than config.toml, from the next run on, too."""
    settings = services.settings
    stronger = (
        [name for name in settings.layers("model") if name in (ENVIRONMENT, PROJECT)] if settings is not None else []
    )
    return f"; what the {stronger[0]} says comes before it" if stronger else ""


async def complete(context: CommandContext, typed: str) -> list[str]:
    """Names of models for what is typed so far: aliases, and what the provider has."""
    provider, colon, rest = typed.partition(":")
    try:
        if not colon:
            provider, rest = (await context.models.choose("")).model.provider, typed
        models = [f"{provider}:{model.id}" for model in await context.models.listed(provider)]
    except ModelError:
        models = []  # no list in time: what is typed stays
    return [name for name in (*context.models.aliases(), *models) if rest.casefold() in name.casefold()]


async def check_model(name: str, models: ModelPool) -> ResolvedModel:
    """A model that is to be kept, checked as far as that goes without asking it anything (/model, -m and -M). Raises NoModel
    and NoSuchModel."""
    _refuse_misspelt(name, models.aliases())
    resolved = await models.check(name)
    await require_listed(resolved.model.provider, resolved.model.name, resolved.base_url)
    if "://" in resolved.base_url and not resolved.category:
        await _require_known(resolved, models)
    return resolved


async def _require_known(resolved: ResolvedModel, models: ModelPool) -> None:
    """Raises NoSuchModel for a name that is nearly one that the provider lists. Providers have names that they do not list."""
    provider, name = resolved.model.provider, resolved.model.name
    try:
        listed = [model.id for model in await models.listed(provider)]
    except ListUnavailable as error:
        models.warn(f"whether {provider} has {name} could not be checked: {error.message}")
        return
    if (
        not listed
        or name in listed
        or name.partition(":")[0] in listed
        or any(id.startswith(f"{name}-") for id in listed)
    ):
        return
    near = closest(name, listed)
    if near and (provider not in COMPATIBLE or is_misprint(name, near)):
        raise NoSuchModel(
            f"{provider} lists no model {name}",
            f"did you mean {provider}:{near}? For one run, not checked: -s model={provider}:{name}",
        )
    models.warn(f"{provider} lists no model {name}; it is kept all the same (`/model list` shows what there is)")


def _refuse_misspelt(name: str, aliases: Sequence[str]) -> None:
    """A server takes any name; one that is nearly an alias is a slip all the same. Raises NoSuchModel."""
    if ":" in name or name in aliases:
        return
    if near := closest(name, aliases):
        raise NoSuchModel(
            f"there is no model `{name}`", f"did you mean `{near}`? PROVIDER:{name} if it is a model's own name"
        )

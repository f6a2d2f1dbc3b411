"""`-m` and `-M`: another model for a context, checked as far as that goes without asking it anything. And what is known of a model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from cru.faces.cli.console import say
from cru.faces.cli.event_loop import run_async
from cru.faces.cli.flags import UsageProblem
from cru.faces.cli.run_options import start_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cru.core.compose import Start
    from cru.core.turn.model_pool import ModelPool
    from cru.faces.cli.operations.flag_run import FlagRun

T = TypeVar("T")


def set_current(run: FlagRun, model: str) -> None:
    from cru.core.events.payloads import ConfigChanged

    _set(run, run.name, model, "cru -m")
    run.events.append(ConfigChanged("model", model))
    run.say(f"model {model} saved for {run.name}")


def set_other(run: FlagRun, name: str, model: str) -> None:
    context = run.store(name).name
    _set(run, context, model, "cru -M")
    run.show(f"Model of {context} set to {model}")


def show_metadata(run: FlagRun, model: str) -> None:
    run.show("\n".join(run_async(_use_pool(start_of(run.parsed, run.name), partial(_describe, model)))))


def show_full_metadata(run: FlagRun, model: str) -> None:
    run.show("\n".join(run_async(_use_pool(start_of(run.parsed, run.name), partial(_describe, model, is_full=True)))))


async def _describe(name: str, models: ModelPool, is_full: bool = False) -> list[str]:
    """Return the lines for models.toml, as chibi prints them. Raises NoModel, NoSuchModel."""
    from cru.core.base.config.positions import join_key
    from cru.core.commands.model import check_model
    from cru.core.commands.model_facts import find_facts
    from cru.core.models.listing import ListUnavailable

    resolved = await check_model(name, models)
    provider, model = resolved.model.provider, resolved.model.name
    try:
        listed = await models.listed(provider) if "://" in resolved.base_url else ()
    except ListUnavailable:
        listed = ()  # check_model has reported it
    facts = find_facts(models, resolved, listed)
    about = [f"# provider: {provider}", *([f"# pricing: {facts.price}"] if facts.price else [])] if is_full else []
    window = f"context_window = {facts.window}" if facts.window else "# context_window: not known"
    return [*about, f"[{join_key(('models', model))}]", window]


def _set(run: FlagRun, context: str, model: str, command: str) -> None:
    """Check it, then keep it in the context's local.toml. Raises NoModel, NoSuchModel, ContextHeld and ConfigError."""
    from cru.core.base.config.edit import set_value
    from cru.core.commands.model import check_model

    if not model.strip():
        raise UsageProblem("a model needs a name", "cru -m PROVIDER:MODEL")
    run_async(_use_pool(start_of(run.parsed, context), partial(check_model, model)))
    store = run.home.open(context)
    with store.lock(command):
        set_value(store.folder / "local.toml", "model", model)


async def _use_pool(start: Start, use: Callable[[ModelPool], Awaitable[T]]) -> T:
    """Return what `use` returns; warnings of the models go to standard error."""
    from cru.core.compose import load_settings
    from cru.core.events.bus import Bus
    from cru.core.events.stamp import Origin
    from cru.core.events.stream import Notice
    from cru.core.models import ModelSettings
    from cru.core.turn.model_pool import ModelPool

    bus = Bus(Origin("", ""))
    bus.stream.subscribe(lambda item: say(f"cru: {item.payload.text}"), Notice)
    models = ModelPool(bus, load_settings(start)[0].of(ModelSettings), start.env, start.home / "models")
    try:
        return await use(models)
    finally:
        await models.close()

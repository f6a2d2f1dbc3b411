"""From settings to a model: which one is meant, and the adapter for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from cru.core.base.net.transport import Transport
from cru.core.models import ModelAlias, ModelPrice, ModelSettings, check_api, merge_api, price_of, providers
from cru.core.models.exchange import Exchange, ReplyLimits
from cru.core.models.failures import RequestFacts
from cru.core.models.protocol import Auth, AuthenticatedSender, Model, NoModel, NoModelNamed, Say
from cru.core.models.providers import COMPATIBLE, KEY_VARIABLES, OPENROUTER, PROVIDERS, Provider, key_for


class ModelChoice(Struct, frozen=True):
    """The model that was chosen.

    provider: its row in the table
    model: the id
    base_url: the provider's address; for local and scripted the file
    parameters: `[api]` of all layers with the alias's `api` over it; adapters add none
    context_window: tokens, if settings say how many
    price: what settings say that it costs
    why: the setting that decided, for people
    images: whether settings say that it takes images; None: they do not say
    """

    provider: str
    model: str
    base_url: str = ""
    parameters: dict[str, object] = {}
    context_window: int | None = None
    why: str = ""
    price: ModelPrice | None = None
    images: bool | None = None


class AdapterModel(Model, Protocol):
    """What `build` gives: a Model that also says whether tools are offered to it unless settings say otherwise."""

    @property
    def tools_by_default(self) -> bool: ...


async def choose_model(
    settings: ModelSettings,
    env: Mapping[str, str],
    models_folder: Path,
    say: Say,
    *,
    servers: Sequence[Provider] | None = None,
) -> ModelChoice:
    """Decide on a model; no key leaves, and only servers of this machine may be asked (`say` names what was found).

    Raises NoModel (exit 5) with the ways to go on."""
    named, source = (settings.model, "the setting model") if settings.model else (env.get("CRU_MODEL", ""), "CRU_MODEL")
    model, alias = _resolve_alias(named, settings)
    parameters = merge_api(settings.api, alias.api)
    for sentence in check_api(parameters):
        say(f"settings: {sentence}")

    def chosen(provider: str, identity: str, base_url: str, why: str) -> ModelChoice:
        own = settings.models.get(identity, ModelAlias())
        price = price_of(alias) or price_of(own)
        window = alias.context_window or own.context_window
        images = own.images if alias.images is None else alias.images
        return ModelChoice(provider, identity, base_url, parameters, window, why, price, images)

    provider, identity = providers.split_model(model.strip(), settings, env)
    if provider in providers.FILE_PROVIDERS:
        return chosen(provider, identity, _require_file(provider, identity, models_folder), source)
    base_url, why = resolve_address(provider, settings, env)
    if base_url:
        if not provider and not settings.base_url:
            providers.refuse_misspelt(identity)
        provider = provider or providers.provider_at(base_url)
        if not identity:
            raise NoModelNamed(f"no model is named for {provider} ({why})", _model_hint(provider, models_folder))
        _require_key(provider, base_url, settings, env)
        return chosen(provider, identity, base_url, f"{source}; {why}")
    return await _choose_unconfigured(identity, models_folder, say, chosen, servers)


def build_model(
    choice: ModelChoice,
    settings: ModelSettings,
    env: Mapping[str, str],
    transport: Transport,
    *,
    say: Say | None = None,
    auth: Auth | None = None,
) -> AdapterModel:
    """The adapter for a choice. Sends nothing. `say` hears of waits before another try and of parameters left out; `auth` gives more
    headers for each request.

    Raises NoModel if a script or a library is missing."""
    tell = say or (lambda text: None)
    kind = PROVIDERS[choice.provider].kind
    if kind == "scripted":
        from cru.core.models.scripted import ScriptedModel

        return ScriptedModel(Path(choice.base_url))
    if kind == "local":
        from cru.core.models.embedded import EmbeddedModel

        return EmbeddedModel(choice.model, Path(choice.base_url), choice.context_window, say=tell)
    return _build_http_model(choice, settings, env, transport, tell, auth)


def _build_http_model(
    choice: ModelChoice,
    settings: ModelSettings,
    env: Mapping[str, str],
    transport: Transport,
    say: Say,
    auth: Auth | None,
) -> AdapterModel:
    key = key_for(choice.provider, choice.base_url, settings, env)
    facts = RequestFacts(
        choice.provider,
        choice.model,
        key.name if key.value else "",
        key.value,
        providers.secrets_in_base_url(choice.base_url),
        choice.context_window or 0,
    )
    limits = _reply_limits(settings)
    headers = {"content-type": "application/json", "accept": "text/event-stream", "user-agent": "cru"}
    sender = transport if auth is None else AuthenticatedSender(transport, auth, choice.provider, choice.model)
    if PROVIDERS[choice.provider].kind == "anthropic":
        from cru.core.models import anthropic

        headers |= {"anthropic-version": anthropic.VERSION} | ({"x-api-key": key.value} if key.value else {})
        endpoint = anthropic.endpoint(choice.base_url)
        exchange = Exchange(sender, endpoint, headers, facts, say=say, limits=limits)
        return anthropic.AnthropicModel(choice.model, exchange, say=say, images=choice.images)
    from cru.core.models import openai_compatible

    if key.value:
        headers["authorization"] = f"Bearer {key.value}"
    if choice.provider == OPENROUTER:
        headers["x-title"] = "cru"
    endpoint = openai_compatible.endpoint(choice.base_url)
    exchange = Exchange(sender, endpoint, headers, facts, say=say, limits=limits)
    build = openai_compatible.OpenAICompatibleModel
    return build(choice.provider, choice.model, exchange, say=say, images=choice.images)


def _reply_limits(settings: ModelSettings) -> ReplyLimits:
    return ReplyLimits(
        settings.stall_timeout, settings.reply_timeout, settings.reply_size_limit, settings.request_tries
    )


def _resolve_alias(named: str, settings: ModelSettings) -> tuple[str, ModelAlias]:
    """A name's model id and what `[models."name"]` says about it."""
    alias = settings.models.get(named, ModelAlias())
    return alias.model or named, alias


def resolve_address(provider: str, settings: ModelSettings, env: Mapping[str, str]) -> tuple[str, str]:
    """Return where requests go and what decided it; "" if nothing did. A named provider keeps its own address beside a `base_url`."""
    own = PROVIDERS[provider].base_url if provider else ""
    if settings.base_url and (not own or providers.same_host(own, settings.base_url)):
        return settings.base_url, "the setting base_url"
    if provider in COMPATIBLE:
        if not (kept := _kept_address(env))[0]:
            raise NoModel(f"{provider}: needs the setting base_url", "write it as http://host:port/v1")
        return kept
    if provider:
        return own, f"the prefix {provider}:"
    if settings.api_key or env.get(providers.OWN_KEY):
        return PROVIDERS[OPENROUTER].base_url, "api_key is set and base_url is not"
    for row in providers.KEYED:
        if env.get(row.key_variable):
            source = providers.source_of(row.key_variable, env)
            return row.base_url, f"{source} is set" if source == row.key_variable else f"there is a key in {source}"
    return _kept_address(env)


def _kept_address(env: Mapping[str, str]) -> tuple[str, str]:
    """Return the address of the only server that `cru login` has kept a key for, and why it is used; "" if there is none, or several."""
    kept = env.servers() if isinstance(env, providers.KeyEnvironment) else {}
    return (next(iter(kept.values())), "`cru login` has kept a key for it") if len(kept) == 1 else ("", "")


def find_address(name: str, settings: ModelSettings, env: Mapping[str, str]) -> str:
    """Where a model of this name is asked, "" if nothing says so, or it is a file. Raises NoModel."""
    model, _ = _resolve_alias(name or settings.model or env.get("CRU_MODEL", ""), settings)
    provider, _ = providers.split_model(model.strip(), settings, env)
    return "" if provider in providers.FILE_PROVIDERS else resolve_address(provider, settings, env)[0]


def find_id(name: str, settings: ModelSettings, env: Mapping[str, str]) -> str:
    """Return the id that a model of this name has at its provider; "" if nothing names it."""
    try:
        return providers.split_model(_resolve_alias(name, settings)[0].strip(), settings, env)[1]
    except NoModel:  # reported where the model is made
        return ""


def _require_key(provider: str, base_url: str, settings: ModelSettings, env: Mapping[str, str]) -> None:
    row = PROVIDERS[provider]
    if (
        row.key_variable
        and providers.same_host(base_url, row.base_url)
        and not key_for(provider, base_url, settings, env).value
    ):
        problem = env.problem if isinstance(env, providers.KeyEnvironment) else ""
        raise NoModel(
            f"{provider} needs a key" + (f": {problem}" if problem else ""),
            f"`cru login {provider}` asks for it and keeps it; or set {row.key_variable}",
        )


def _require_file(provider: str, identity: str, models_folder: Path) -> str:
    """The file of a local model or a script. Raises NoModel if it is not there."""
    from cru.core.models.pull import WEIGHTS, weights_path

    if provider == "local" and identity in WEIGHTS:
        path = weights_path(identity, models_folder)
        if not path.exists():
            raise NoModel(f"local:{identity} is not there yet", f"fetch it with `cru models pull {identity}`")
        return str(path)
    path = Path(identity).expanduser()
    if not path.is_file():
        known = f"; known names: {', '.join(WEIGHTS)}" if provider == "local" else ""
        what = "it is a folder" if path.is_dir() else "there is no such file"
        raise NoModel(f"{provider}:{identity}: {what}", f"name a file as {provider}:/path{known}")
    return str(path)


async def _choose_unconfigured(
    identity: str, models_folder: Path, say: Say, chosen: Callable[..., ModelChoice], servers: Sequence[Provider] | None
) -> ModelChoice:
    from cru.core.models.probe import SERVERS, probe

    server = await probe(SERVERS if servers is None else servers)
    if server is not None and (not identity or identity in server.models or f"{identity}:latest" in server.models):
        model = identity or server.models[0]
        say(f"no provider is configured: using {model} of {server.provider.name} at {server.provider.base_url}")
        return chosen(
            server.provider.name, model, server.provider.base_url, f"{server.provider.name} answers on this machine"
        )
    if identity:
        providers.refuse_misspelt(identity)
        offers = f"; {server.provider.name} here offers {', '.join(server.models[:8])}" if server else ""
        raise NoModel(f"no provider is configured for the model {identity!r}{offers}", _setup_hint())
    for name in _usable_weights(models_folder):
        say(f"no provider is configured: using the small model {name} inside this process")
        return chosen("local", name, _require_file("local", name, models_folder), "nothing else is configured")
    raise NoModelNamed("no model is configured", _setup_hint())


def _usable_weights(models_folder: Path) -> list[str]:
    """Known models that are there and can run here."""
    from importlib.util import find_spec

    from cru.core.models.pull import WEIGHTS, weights_path

    if not any(weights_path(name, models_folder).exists() for name in WEIGHTS) or find_spec("xllamacpp") is None:
        return []
    return [name for name in WEIGHTS if weights_path(name, models_folder).exists()]


def _model_hint(provider: str, models_folder: Path) -> str:
    local = "".join(f" or local:{name}" for name in _usable_weights(models_folder))
    return (
        f"`cru models list {provider}` shows its models\n"
        f"choose one with `cru -m NAME`{local}, or for one run with --model NAME"
    )


def _setup_hint() -> str:
    return (
        "`cru` on a terminal leads through it, or one of: "
        f"1. a key (`cru login`, or {', '.join(KEY_VARIABLES[:3])}) and a model (CRU_MODEL or `model`); "
        "2. a server: `base_url`, or Ollama or LM Studio running on this machine; "
        "3. a small model inside cru: pip install xllamacpp && cru models pull smollm2"
    )

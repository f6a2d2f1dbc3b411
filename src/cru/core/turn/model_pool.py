"""The models of a session: chosen by name, made when first asked for, replaced by /model."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cru.core.events.bus import Bus
from cru.core.events.payloads import ModelSelected
from cru.core.events.stream import Notice
from cru.core.models import ModelAlias, ModelPrice, ModelSettings, price_of
from cru.core.models.protocol import NoModel, NoModelNamed
from cru.core.models.providers import PROVIDERS, key_for
from cru.core.turn.parts import ModelAccess, ResolvedModel
from cru.core.turn.spending import UsageLedger

if TYPE_CHECKING:
    from cru.core.base.net.transport import Transport
    from cru.core.models.listing import ListedModel

LIST_SECONDS = 5.0
"""For the list of a provider's models, while a person waits."""


class ModelPool:
    """Chooses models by name and makes each adapter once, when it is first asked for. `folder` holds the embedded models.

    auth: who gives headers for each request, from (provider, model)
    access: the main agent's way to these models
    ask: lets a person choose a model where the settings name none, and gives the settings with it; None: nobody is there
    """

    def __init__(
        self, bus: Bus, settings: ModelSettings, env: Mapping[str, str], folder: Path, ledger: UsageLedger | None = None
    ) -> None:
        self._bus = bus
        self._settings = settings
        self._env = env
        self._folder = folder
        self._keyed = self._find_keys()
        self.auth: list[Callable[[str, str], Awaitable[Mapping[str, str]]]] = []
        self.ask: Callable[[ModelSettings], Awaitable[ModelSettings | None]] | None = None
        self._made: dict[str, ResolvedModel] = {}
        self._old: list[ResolvedModel] = []
        self._used = ""
        self._lists: dict[str, tuple[ListedModel, ...]] = {}
        self._why: dict[int, str] = {}
        self._transport: Transport | None = None
        self.access = ModelAccess(
            choose=self.choose, ledger=ledger or UsageLedger(), configured_name=self.configured_name, transport=self.transport,
            auth=self.auth,
        )  # fmt: skip

    def _find_keys(self) -> Mapping[str, str]:
        return with_keys(self._env, self._folder.parent)

    def renew_keys(self) -> None:
        """The keys that are kept have changed: models that are asked from now on use them."""
        self._keyed = self._find_keys()
        self._old += self._made.values()
        self._made.clear()
        self._lists.clear()
        if self._used:
            self._settings = replace(self._settings, model=self._used)

    async def choose(self, name: str) -> ResolvedModel:
        """The model of that name, "" = the configured one; of a category the first that can be asked. Raises NoModel."""
        if name in self._made:
            return self._made[name]
        resolved = await self.check(name)
        await self._announce(resolved)
        return resolved

    async def check(self, name: str) -> ResolvedModel:
        """The same; nobody hears of it. Raises NoModel."""
        if name in self._made:
            return self._made[name]
        category = (name or self._settings.model).strip()
        if category in self._settings.categories:
            resolved = await self._first_of(category)
        else:
            resolved = await self._check_model(name)
        self._made[name] = resolved
        return resolved

    async def _first_of(self, category: str) -> ResolvedModel:
        """The first model of a category that can be asked; the others are told. Raises NoModel."""
        from cru.core.models.categories import models_of

        members = models_of(category, self._settings)
        reasons: list[str] = []
        for at, member in enumerate(members):
            try:
                resolved = await self._check_model(member)
            except NoModel as error:
                reasons.append(f"{member} ({error.message})")
                continue
            for reason in reasons:
                self._say(f"category {category}: left out is {reason}")
            first = replace(resolved, category=category, fallbacks=members[at + 1 :])
            self._why[id(first)] = f"the category {category}: {', '.join(members)}"
            return first
        raise NoModel(
            f"no model of the category `{category}` can be asked: {'; '.join(reasons) or 'it has none'}",
            f"mend `{category}` in [categories]",
        )

    async def _check_model(self, name: str) -> ResolvedModel:
        """A model that is no category's name. Raises NoModel."""
        if name in self._made and not self._made[name].category:
            return self._made[name]
        from cru.core.models.registry import build_model, choose_model

        if self._settings.categories:
            from cru.core.models.categories import refuse_misspelt_category

            refuse_misspelt_category(name or self._settings.model, self._settings)
        settings = replace(self._settings, model=name) if name else self._settings
        try:
            choice = await choose_model(settings, self._keyed, self._folder, self._say)
        except NoModelNamed:
            chosen = await self.ask(settings) if self.ask is not None else None
            if chosen is None:
                raise
            self._settings, self._keyed = chosen, self._find_keys()
            settings = chosen
            choice = await choose_model(settings, self._keyed, self._folder, self._say)
        model = build_model(choice, settings, self._keyed, self.transport(), say=self._say, auth=self._headers)
        resolved = ResolvedModel(
            model, choice.parameters, choice.context_window or 0, _shown(choice.base_url), choice.price
        )
        self._made[name] = resolved
        if model.name not in self._settings.categories:
            self._made[model.name] = resolved
        self._why[id(resolved)] = choice.why
        return resolved

    async def _headers(self, provider: str, model: str) -> dict[str, str]:
        headers: dict[str, str] = {}
        for give in self.auth:
            headers |= await give(provider, model)
        return headers

    async def use(self, name: str) -> ResolvedModel:
        """Make a model the configured one of this session. Raises NoModel; the old one stays then."""
        resolved, old = await self.check(name), self._made.get("")
        self._made[""], self._used = resolved, name
        await self._announce(resolved, name, old.model.name if old is not None else "")
        return resolved

    async def _announce(self, resolved: ResolvedModel, requested: str = "", before: str = "") -> None:
        model = resolved.model
        await self._bus.dispatch(ModelSelected(model.provider, model.name, self.why(resolved), requested, before))

    def why(self, resolved: ResolvedModel) -> str:
        """What decided on it: a setting, a variable, a server that was found."""
        return self._why[id(resolved)]

    async def listed(self, provider: str) -> tuple[ListedModel, ...]:
        """What a provider has, with its own words; it is asked once a session. Raises ListUnavailable and KeyRefused."""
        if provider not in self._lists:
            from cru.core.models.listing import ListUnavailable, list_models
            from cru.core.models.registry import resolve_address

            if provider not in PROVIDERS or PROVIDERS[provider].kind not in ("openai", "anthropic"):
                raise ListUnavailable(f"{provider} lists no models")
            base_url, _ = resolve_address(provider, self._settings, self._keyed)
            key = key_for(provider, base_url, self._settings, self._keyed)
            more = await self._headers(provider, "")
            self._lists[provider] = await list_models(
                self.transport(), provider, base_url, key.value, more, LIST_SECONDS
            )
        return self._lists[provider]

    def set_window(self, model: str, window: int) -> None:
        """The window of a model, in tokens, that the settings did not say."""
        about = replace(self._settings.models.get(model, ModelAlias()), context_window=window)
        self._settings = replace(self._settings, models={**self._settings.models, model: about})
        for name in [name for name, resolved in self._made.items() if resolved.model.name == model]:
            self._old.append(self._made.pop(name))

    def is_named(self) -> bool:
        """Whether a model is configured, so that nobody need be asked for one."""
        return bool(self._settings.model or self._used)

    def configured_name(self) -> str:
        """Return the id of the configured model without its provider; "" if settings do not tell it, as with a category."""
        known = self._made.get("")
        if known is not None:
            return known.model.name
        name = (self._settings.model or self._env.get("CRU_MODEL", "")).strip()
        if name in self._settings.categories:
            return ""
        from cru.core.models.registry import find_id

        return find_id(name, self._settings, self._keyed)

    def warn(self, text: str) -> None:
        """Tell the person."""
        self._say(text)

    def aliases(self) -> tuple[str, ...]:
        """Names that the settings give to models, categories too."""
        named = (name for name, about in self._settings.models.items() if about.model)
        return (*named, *self._settings.categories)

    def why_elsewhere(self, name: str) -> str:
        """Why a model that another model names needs leave: what it gets to read goes to another place than that of the configured one;
        "" if it does not, or the settings name it."""
        from cru.core.models.registry import find_address

        if name in self.aliases():
            return ""
        try:
            other = find_address(name, self._settings, self._keyed)
        except NoModel:  # it is told where the model is made
            return ""
        try:
            own = find_address("", self._settings, self._keyed)
        except NoModel:
            own = ""
        is_other = other not in ("", own)
        return f"its model `{name}` is asked at {other}, where no setting of yours leads" if is_other else ""

    def own_price(self, provider: str, model: str) -> ModelPrice | None:
        """What the settings say that a model costs, under its own name or another."""
        names = (model, f"{provider}:{model}", f"{provider}/{model}")
        about = self._settings.models.items()
        prices = (price_of(alias) for name, alias in about if name in names or alias.model in names)
        return next((price for price in prices if price is not None), None)

    def transport(self) -> Transport:
        """One HTTP transport for the session, made on the loop's thread when first needed."""
        if self._transport is None:
            from cru.core.base.net import TimeLimits
            from cru.core.base.net.transport import Transport

            settings = self._settings
            limits = TimeLimits(settings.connect_timeout, settings.first_byte_timeout, settings.idle_timeout)
            self._transport = Transport(limits)
        return self._transport

    async def close(self) -> None:
        """Close every connection."""
        for model in {id(resolved.model): resolved.model for resolved in (*self._old, *self._made.values())}.values():
            await model.close()
        if self._transport is not None:
            await self._transport.close()

    def _say(self, text: str) -> None:
        self._bus.stream.tell(Notice("warning", text))


def with_keys(env: Mapping[str, str], home: Path) -> Mapping[str, str]:
    """The environment with the keys that are kept in cru's home, if any are."""
    if not os.path.lexists(home / "keys.json"):
        return env
    from cru.core.models.stored_keys import key_environment

    return key_environment(env, home)


def _shown(base_url: str) -> str:
    """An address as records have it; a file's path as it is."""
    if "://" not in base_url or not ("@" in base_url or "?" in base_url):
        return base_url
    from cru.core.base.config.secret import mask_url

    return mask_url(base_url)

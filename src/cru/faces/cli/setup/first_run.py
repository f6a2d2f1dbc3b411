"""The first run: a person at a terminal, and no model. One choice, checked by asking the provider what it has, and kept."""

from __future__ import annotations

import asyncio
import re

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.bundled import TOUR
from cru.core.base.config.edit import set_value
from cru.core.base.config.positions import join_key
from cru.core.base.net.transport import Transport
from cru.core.base.values.errors import CruError
from cru.core.compose.start import Start
from cru.core.models import ModelAlias, ModelSettings
from cru.core.models.listing import KeyRefused, ListedModel, list_models
from cru.core.models.providers import CUSTOM, key_for
from cru.core.models.pull import pull
from cru.core.turn.model_pool import with_keys
from cru.faces.cli.dialogs.asker import TerminalAsker
from cru.faces.cli.setup.dialog import SetupDialog, provider_by_key
from cru.faces.cli.setup.keys import KeyOwner, ask_key, check_key, keep_key, owner_of
from cru.faces.cli.setup.options import SetupOption, find_options

_ADDRESS = re.compile(r"https?://\S+|[\w.-]+:\d+(/\S*)?")
TITLE = "No model is configured yet. Which one shall answer?"


class ChosenModel(Struct, frozen=True):
    """What is to be kept.

    name: PROVIDER:MODEL
    base_url: where it is, if its provider does not say
    window: tokens, if the provider says how many
    owner, key: a key that was pasted, and whose it is
    """

    name: str
    base_url: str = ""
    window: int | None = None
    owner: KeyOwner | None = None
    key: str = ""

    def __repr__(self) -> str:
        return f"ChosenModel({self.name!r})"


async def ask_for_model(start: Start, asker: TerminalAsker, settings: ModelSettings) -> ModelSettings | None:
    """The settings with what a person has chosen, which is kept; None: not now, or the terminal has gone."""

    async def ask(fd: int) -> ModelSettings | None:
        setup = FirstRun(start, settings, SetupDialog(fd))
        try:
            return await setup.run()
        finally:
            await setup.close()

    try:
        return await asker.converse(ask)
    except OSError:
        return None


class FirstRun:
    """The questions. What is chosen is kept once it was seen to work."""

    def __init__(self, start: Start, settings: ModelSettings, dialog: SetupDialog) -> None:
        self._start, self._settings, self._dialog = start, settings, dialog
        self._env = with_keys(start.env, start.home)
        self._transport = Transport()
        self._models = start.home / "models"

    async def close(self) -> None:
        await self._transport.close()

    async def run(self) -> ModelSettings | None:
        """None: cancelled; nothing is kept then, and the next run asks again."""
        while True:
            options = await find_options(self._settings, self._env, self._models)
            selection = await self._dialog.option(
                TITLE, [option.label for option in options], [option.about for option in options], shown_for
            )
            if selection is None:
                return None
            if selection.other is None and options[selection.selected[0]].kind == "tour":
                return replace(self._settings, model=f"scripted:{TOUR}")
            try:
                chosen = await (
                    self._take(options[selection.selected[0]])
                    if selection.other is None
                    else self._take_words(selection.other)
                )
                if chosen is not None:
                    self._keep(chosen)
                    return self._settings_with(chosen)
            except CruError as error:
                self._dialog.complain(error)

    async def _take_words(self, words: str) -> ChosenModel | None:
        """An address or a key that was pasted right at the list. Raises CruError."""
        provider = provider_by_key(words)
        if not provider:
            return await self._ask_server(KeyOwner(CUSTOM, _with_scheme(words)), True)
        checked = await check_key(self._transport, owner_of(provider), words)
        return await self._choose(checked.owner, checked.models, checked.key)

    async def _take(self, option: SetupOption) -> ChosenModel | None:
        """None: ask again. Raises CruError."""
        if option.kind == "embedded":
            await asyncio.to_thread(pull, option.label.partition(":")[2], self._models, self._dialog.say)
            return ChosenModel(option.label)
        if option.kind == "paste":
            return await self._paste(None)
        if option.kind == "address":
            address = await self._dialog.text("its address, as http://host:port/v1")
            return None if address is None else await self._ask_server(KeyOwner(CUSTOM, _with_scheme(address)), True)
        return await self._ask_server(KeyOwner(option.provider, option.base_url), False)

    async def _ask_server(self, owner: KeyOwner, is_new: bool) -> ChosenModel | None:
        """Its models; if it wants a key, that is asked for first."""
        settings = replace(self._settings, base_url=owner.base_url) if is_new else self._settings
        key = "" if is_new else key_for(owner.provider, owner.base_url, settings, self._env).value
        try:
            models = await list_models(self._transport, owner.provider, owner.base_url, key)
        except KeyRefused as error:
            self._dialog.complain(error)
            return await self._paste(owner)
        return await self._choose(owner, models)

    async def _paste(self, owner: KeyOwner | None) -> ChosenModel | None:
        checked = await ask_key(self._dialog, self._transport, owner)
        return None if checked is None else await self._choose(checked.owner, checked.models, checked.key)

    async def _choose(self, owner: KeyOwner, models: tuple[ListedModel, ...], key: str = "") -> ChosenModel | None:
        name = await self._dialog.model(owner.provider, models, owner.name)
        if name is None:
            return None
        base_url = owner.base_url if owner.provider == CUSTOM and not self._settings.base_url else ""
        window = next((model.context_window for model in models if model.id == name), None)
        return ChosenModel(f"{owner.provider}:{name}", base_url, window, owner if key else None, key)

    def _settings_with(self, chosen: ChosenModel) -> ModelSettings:
        models, model = self._settings.models, chosen.name.partition(":")[2]
        if chosen.window:
            models = {model: ModelAlias(context_window=chosen.window), **models}
        base_url = chosen.base_url or self._settings.base_url
        return replace(self._settings, model=chosen.name, base_url=base_url, models=models)

    def _keep(self, chosen: ChosenModel) -> None:
        """Raises KeysUnusable and ConfigError."""
        path = self._start.home / "config.toml"
        if chosen.owner is not None:
            self._dialog.say(f"  the key is kept in {keep_key(self._start.home, chosen.owner, chosen.key)}")
        if chosen.base_url:
            set_value(path, "base_url", chosen.base_url)
        set_value(path, "model", chosen.name)
        model = chosen.name.partition(":")[2]
        if chosen.window and model not in self._settings.models:
            set_value(path, join_key(("models", model, "context_window")), chosen.window)
        self._dialog.say(f"  {chosen.name} answers from now on (kept in {path}); `/model NAME` chooses another")


def shown_for(words: str) -> str:
    """What is shown of an address or a key; "" for what is neither."""
    if provider := provider_by_key(words):
        return f"a key of {provider}"
    return words if _ADDRESS.fullmatch(words) else ""


def _with_scheme(address: str) -> str:
    """An address as people type it."""
    return address if "://" in address else f"http://{address}"

"""Categories: names for chains of models, of which the next answers where one fails (docs/models.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cru.core.base.config.closest import is_misprint
from cru.core.models import ModelAlias, ModelSettings
from cru.core.models.protocol import NoModel
from cru.core.models.providers import refuse_misspelt, split_model


def models_of(category: str, settings: ModelSettings) -> tuple[str, ...]:
    """The models of a category in their order, those of categories that it names in their place; () if there is none. A category
    that names itself, over others too, adds nothing there."""
    return tuple(dict.fromkeys(_expand(category, settings, (category,))))


def _expand(category: str, settings: ModelSettings, above: tuple[str, ...]) -> Iterator[str]:
    for member in settings.categories.get(category, ()):
        if member not in settings.categories:
            yield member
        elif member not in above:
            yield from _expand(member, settings, (*above, member))


def refuse_misspelt_category(name: str, settings: ModelSettings) -> None:
    """Raises NoModel if a name is almost that of a category: a server would be asked for a model that nobody meant."""
    if ":" in name or "/" in name or name in settings.models:
        return
    near = next((category for category in settings.categories if is_misprint(name, category)), "")
    if near:
        raise NoModel(
            f"there is no model and no category `{name}`",
            f"did you mean the category `{near}`? PROVIDER:{name} if it is a model's own name",
        )


def find_problems(settings: ModelSettings, env: Mapping[str, str]) -> Iterator[str]:
    """What is wrong in `[categories]` and with the prices in `[models]`, a sentence each. Nobody is asked anything."""
    for name, alias in settings.models.items():
        if (alias.input_price is None) != (alias.output_price is None):
            lacking = "input_price" if alias.input_price is None else "output_price"
            yield f"settings: models.{name}: `{lacking}` is missing, so what it costs is not known"
    for category in settings.categories:
        if category in settings.models:
            yield f"settings: `{category}` is a category and a name in [models]: the category counts"
        if not models_of(category, settings):
            yield f"settings: categories.{category}: there is no model in it"
        yield from _cycles(category, settings)
        yield from _unusable(category, settings, env)


def _cycles(category: str, settings: ModelSettings) -> Iterator[str]:
    """The places where a category leads back to itself."""
    ways: list[tuple[str, ...]] = [(category,)]
    while ways:
        way = ways.pop()
        for member in settings.categories[way[-1]]:
            if member == category:
                yield f"settings: categories.{category} names itself ({' → '.join((*way, member))}): that place is left out"
            elif member in settings.categories and member not in way:
                ways.append((*way, member))


def _unusable(category: str, settings: ModelSettings, env: Mapping[str, str]) -> Iterator[str]:
    """Members that no adapter can ask."""
    for member in settings.categories[category]:
        if member in settings.categories:
            continue
        try:
            refuse_misspelt_category(member, settings)
            alias = settings.models.get(member, ModelAlias())
            provider, identity = split_model((alias.model or member).strip(), settings, env)
            if not provider and not settings.base_url:
                refuse_misspelt(identity)
        except NoModel as error:
            hint = f" ({error.hint})" if error.hint else ""
            yield f"settings: categories.{category}: {member} is left out: {error.message}{hint}"

"""The table of providers, and whose key goes where."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from cru.core.models import ModelSettings
from cru.core.models.protocol import NoModel

Kind = Literal["openai", "anthropic", "local", "scripted"]


class Provider(Struct, frozen=True):
    """One row of the table of providers.

    name: what stands before the colon
    kind: the adapter
    base_url: its address
    key_variable: the environment variable of its key; "": it needs none
    """

    name: str
    kind: Kind
    base_url: str = ""
    key_variable: str = ""


CUSTOM, ANTHROPIC_CUSTOM = "openai_compatible", "anthropic_compatible"
COMPATIBLE = (CUSTOM, ANTHROPIC_CUSTOM)
"""Those that ask the server at `base_url`. Every other provider has its own address."""
FILE_PROVIDERS = ("local", "scripted")
"""Those whose models may be files."""
_FILE = re.compile(rf"(?:{'|'.join(FILE_PROVIDERS)})[:/](.+)", re.DOTALL)
OPENROUTER, OPENAI, ANTHROPIC = "openrouter", "openai", "anthropic"

PROVIDERS: dict[str, Provider] = {
    row.name: row
    for row in (
        Provider(OPENROUTER, "openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        Provider(OPENAI, "openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        Provider(ANTHROPIC, "anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
        Provider("ollama", "openai", "http://127.0.0.1:11434/v1"),
        Provider("lmstudio", "openai", "http://127.0.0.1:1234/v1"),
        Provider("llamacpp", "openai", "http://127.0.0.1:8080/v1"),
        Provider("vllm", "openai", "http://127.0.0.1:8000/v1"),
        Provider("local", "local"),
        Provider("scripted", "scripted"),
        Provider(CUSTOM, "openai"),
        Provider(ANTHROPIC_CUSTOM, "anthropic"),
    )
}
"""In the order in which a key decides when nothing else does."""
USUAL_PORTS = ("llamacpp", "vllm")
"""Providers whose port others like, too: a base_url there need not mean them."""

KEYED: tuple[Provider, ...] = tuple(row for row in PROVIDERS.values() if row.key_variable)
OWN_KEY = "CRU_API_KEY"
KEY_VARIABLES: tuple[str, ...] = (*(row.key_variable for row in KEYED), OWN_KEY)
"""Variables that hold the keys that cru itself uses: neither tools nor code inside the process see them."""
KEY_SUFFIXES = ("_KEY", "_APIKEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PWD")
KEY_PREFIXES = ("TF_TOKEN_", "POETRY_PYPI_TOKEN_")
OTHER_KEYS: frozenset[str] = frozenset((
    "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "GITHUB_PAT", "GOOGLE_APPLICATION_CREDENTIALS", "PASSWORD", "PGPASSWORD",
    "REDISCLI_AUTH", "SECRET", "TOKEN",
))  # fmt: skip
"""What holds keys of others, by its end, its beginning or its name: what a person runs needs them, what the model or a project runs
gets them only if the person says so."""
NO_SECRETS = frozenset(("GOOGLE_APPLICATION_CREDENTIALS", "AWS_ACCESS_KEY_ID"))
"""Of these, a file's name and a user's: records keep them."""
BASE_URL = "CRU_BASE_URL"

LATER = (
    "google",
    "gemini",
    "groq",
    "mistral",
    "bedrock",
    "azure",
    "xai",
    "cohere",
    "vertex",
    "huggingface",
    "deepseek",
)
"""Providers that have no adapter yet. Most of them offer an OpenAI-compatible base_url."""


SHORTEST = 4


class ApiKey(Struct, frozen=True):
    """A key and the name of the variable or setting that it came from; both "" if there is none."""

    value: str = ""
    name: str = ""

    def __repr__(self) -> str:
        return f"ApiKey(name={self.name!r})"


class KeyEnvironment(Mapping[str, str]):
    """An environment in which a variable may have a key that is kept elsewhere (stored_keys.py).

    problem: why a kept key cannot be read, "" if none was tried in vain
    """

    problem = ""

    def source(self, variable: str) -> str:
        """Where its value is from, for people."""
        return variable

    def key_at(self, base_url: str) -> ApiKey:
        """The key that is kept for that server, which no variable has."""
        return ApiKey()

    def servers(self) -> Mapping[str, str]:
        """The base_url of each server that a key is kept for, by scheme, host and port."""
        return {}


def source_of(variable: str, env: Mapping[str, str]) -> str:
    """Where a variable's value is from: its own name if it is from the environment."""
    return env.source(variable) if isinstance(env, KeyEnvironment) else variable


def key_for(provider: str, base_url: str, settings: ModelSettings, env: Mapping[str, str]) -> ApiKey:
    """The key that a request to `base_url` may carry.

    A provider's own variable is sent to that provider's host and nowhere else. The setting `api_key` (or CRU_API_KEY) belongs to
    the setting `base_url`; without one, to the provider that the model names (OpenRouter if it names none)."""
    own = (
        ApiKey(settings.api_key.strip(), "the setting api_key")
        if settings.api_key
        else ApiKey(env.get(OWN_KEY, "").strip(), OWN_KEY)
    )
    if settings.base_url and same_host(settings.base_url, base_url) and own.value:
        return own
    for row in KEYED:
        if same_host(row.base_url, base_url) and env.get(row.key_variable):
            return ApiKey(env[row.key_variable].strip(), source_of(row.key_variable, env))
    official = provider in PROVIDERS and bool(PROVIDERS[provider].key_variable)
    if own.value and not settings.base_url and official and same_host(PROVIDERS[provider].base_url, base_url):
        return own
    return env.key_at(base_url) if isinstance(env, KeyEnvironment) else ApiKey()


def same_host(url: str, other: str) -> bool:
    """Whether two URLs mean the same server: scheme, host and port."""
    return origin_of(url) == origin_of(other) != ""


def origin_of(url: str) -> str:
    """Scheme, host and port; "" if it is no URL."""
    scheme, mark, rest = url.partition("://")
    host = rest.split("/", 1)[0].split("?", 1)[0].lower()
    host = host.removesuffix(":443" if scheme == "https" else ":80")
    return f"{scheme.lower()}://{host}" if mark and host else ""


def provider_at(base_url: str) -> str:
    """The provider that a base_url belongs to; CUSTOM if none has it."""
    rows = (row for row in PROVIDERS.values() if row.name not in USUAL_PORTS)
    return next((row.name for row in rows if same_host(row.base_url, base_url)), CUSTOM)


def file_of_model(name: str) -> str:
    """The file that a model of this name is read from, as an absolute path with the dots that are in it, which links may stand before;
    "" if it is asked somewhere, or nothing is named."""
    match = _FILE.match(name.strip())
    return os.path.join(os.getcwd(), os.path.expanduser(match[1])) if match else ""


def split_model(name: str, settings: ModelSettings, env: Mapping[str, str]) -> tuple[str, str]:
    """`[provider:]model` in two parts; the first is "" if no provider is named.

    A slash belongs to the id unless the part before it is a configured provider and no base_url is set: then `anthropic/x` is an
    id of OpenRouter as long as there is no ANTHROPIC_API_KEY."""
    before, colon, after = name.partition(":")
    if colon and not after.strip():
        raise NoModel(f"no model is named after the colon of `{name}`", "write it as PROVIDER:MODEL")
    if colon and not before.strip():
        raise NoModel(f"no provider is named before the colon of `{name}`", f"providers: {', '.join(PROVIDERS)}")
    if colon and before in PROVIDERS:
        return before, after
    if colon and before in LATER and not settings.base_url:  # there it may be an id, as `mistral:7b`
        raise NoModel(
            f"{before}: is not available yet",
            "many of them offer an OpenAI-compatible server: set `base_url` and `api_key`",
        )
    before, slash, after = name.partition("/")
    if slash and before in PROVIDERS and not settings.base_url:
        variable = PROVIDERS[before].key_variable
        if not variable or env.get(variable):
            return before, name if before == OPENROUTER and "/" not in after else after  # its own openrouter/auto
    return "", name


def refuse_misspelt(identity: str) -> None:
    """Raises NoModel if a model id of no named provider begins with almost the name of one: it is no id to ask a server for."""
    before, colon, _ = identity.partition(":")
    if not colon or "/" in before:
        return
    from cru.core.base.config.closest import closest

    if near := closest(before, PROVIDERS):
        raise NoModel(f"there is no provider `{before}`", f"did you mean {near}:?")


def key_variables(env: Iterable[str]) -> frozenset[str]:
    """Which variables of an environment hold keys, anybody's."""
    return frozenset(
        name
        for name in env
        if name in OTHER_KEYS or name.upper().endswith(KEY_SUFFIXES) or name.startswith(KEY_PREFIXES)
    )


def secret_names(env: Iterable[str], passed: Sequence[str] = ()) -> frozenset[str]:
    """The same, but for those that `passed` names; a pattern (`AWS_*`) is not about cru's own keys."""
    names = key_variables(env).difference(passed)
    patterns = [pattern for pattern in passed if "*" in pattern]
    if not patterns:
        return names
    from fnmatch import fnmatchcase

    return frozenset(
        name for name in names if name in KEY_VARIABLES or not any(fnmatchcase(name, pattern) for pattern in patterns)
    )


def own_keys(settings: ModelSettings, env: Mapping[str, str]) -> list[str]:
    """The values of the keys that cru itself uses, in a base_url too: what no result of a tool shows to a model."""
    values = [settings.api_key.strip(), *(env.get(name, "").strip() for name in KEY_VARIABLES)]
    values += secrets_in_base_url(env.get(BASE_URL, ""))
    values += secrets_in_base_url(settings.base_url)
    if isinstance(env, KeyEnvironment):
        values.append(env.key_at(settings.base_url).value)
    return [value for value in dict.fromkeys(values) if value]


def other_keys(env: Mapping[str, str]) -> list[str]:
    """Those of other programs: journals and traces leave them out, too. Not what is a plain word: a password of `postgres` would take that
    word out of everything."""
    names = sorted(key_variables(env) - NO_SECRETS - {*KEY_VARIABLES})
    values = dict.fromkeys(env.get(name, "").strip() for name in names)
    return [value for value in values if value and not value.isalpha()]


def secrets_in_base_url(base_url: str) -> tuple[str, ...]:
    """What is secret in an address: user name, password and values of its query, but for words too short to be told from others."""
    if not ("@" in base_url or "?" in base_url):
        return ()
    from cru.core.base.config.secret import secrets_in_url

    return tuple(secret for secret in secrets_in_url(base_url) if len(secret) >= SHORTEST)

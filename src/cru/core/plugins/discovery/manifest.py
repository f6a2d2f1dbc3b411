"""What a plugin says about itself in its manifest: `plugin.yaml`, `plugin.yml`, `manifest.yaml` or `manifest.yml`."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.config.closest import did_you_mean
from cru.core.base.files import MAX_BYTES
from cru.core.base.files.regular import read_regular
from cru.core.plugins.errors import BadManifest

NAMES = ("plugin.yaml", "plugin.yml", "manifest.yaml", "manifest.yml")
LIMIT_BYTES = 16 * 1024
NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}(?<![_-])")
NAME_RULE = (
    "a name begins with a small letter; small letters, digits, - and _ follow, 64 at most, - and _ not at the end"
)
CAPABILITIES = (
    "filesystem", "network", "shell", "vault", "agent", "ui", "config", "system", "websocket", "intercept_tools",
)  # fmt: skip
"""What a plugin may say that it uses. It informs; nothing is withheld from a plugin that does not say it."""
OTHER_WORDS = {"kiln": "vault", "web_socket": "websocket"}


class Dependency(Struct, frozen=True):
    """Another plugin that must be loaded before; an optional one only if it is there."""

    name: str
    optional: bool = False


class Manifest(Struct, frozen=True):
    """What stands in a manifest. Other keys are ignored.

    main: the file that is run; "": not said
    enabled: overruled by `[plugins.NAME] enabled`
    """

    name: str = ""
    version: str = "0.0.0"
    description: str = ""
    author: str = ""
    license: str = ""
    main: str = ""
    enabled: bool = True
    capabilities: tuple[str, ...] = ()
    dependencies: tuple[Dependency, ...] = ()


def manifest_file(folder: Path) -> Path | None:
    """The manifest of a plugin's folder; of several the first in the order of NAMES."""
    return next((path for name in NAMES if (path := folder / name).exists() or path.is_symlink()), None)


def read_manifest(file: Path) -> Manifest:
    """Without a name in it, the plugin is called as its folder. Raises BadManifest with file and key."""
    try:
        manifest = msgspec.convert(_parse(file), Manifest)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        key = place.rstrip("`").lstrip(".")
        raise BadManifest(
            f"{file}: {f'{key}: ' if key else ''}{message[:1].lower()}{message[1:]}", _quote_hint(key)
        ) from error
    manifest = msgspec.structs.replace(
        manifest,
        name=manifest.name or file.parent.name,
        capabilities=tuple(OTHER_WORDS.get(c, c) for c in manifest.capabilities),
    )
    _check(manifest, file)
    return manifest


def _parse(file: Path) -> object:
    try:
        data = read_regular(file, MAX_BYTES)
    except OSError as error:
        raise BadManifest(f"{file} cannot be read: {error.strerror or error}") from error
    if len(data) > LIMIT_BYTES:
        raise BadManifest(f"{file} is too large for a manifest: {len(data)} bytes, the limit is {LIMIT_BYTES}")
    from cru.core.base.files.yaml_text import BadYaml, parse_yaml

    try:
        return parse_yaml(data.decode("utf-8-sig"))
    except BadYaml as error:
        raise BadManifest(f"{file}{f':{error.line}' if error.line else ''}: not YAML: {error.problem}") from error
    except UnicodeDecodeError as error:
        raise BadManifest(f"{file}: not UTF-8", "save the file as UTF-8") from error


def _check(manifest: Manifest, file: Path) -> None:
    """The rules of single keys. Raises BadManifest."""
    if not NAME.fullmatch(manifest.name):
        raise BadManifest(f"{file}: name: {manifest.name!r} is no name for a plugin", NAME_RULE)
    parts = manifest.version.split(".")
    if len(parts) > 4 or not all(parts):
        raise BadManifest(
            f"{file}: version: {manifest.version!r} is no version", "one to four parts with dots between: 1.2.0"
        )
    for word in manifest.capabilities:
        if word not in CAPABILITIES:
            known = (*CAPABILITIES, *OTHER_WORDS)
            hint = did_you_mean(word, known) or f"known: {', '.join(CAPABILITIES)}"
            raise BadManifest(f"{file}: capabilities: unknown capability {word!r}", hint)
    main = Path(manifest.main)
    if main.is_absolute() or ".." in main.parts or (manifest.main and main.suffix not in (".lua", ".fnl", ".py")):
        raise BadManifest(
            f"{file}: main: {manifest.main!r} is no file that can be run",
            "a .lua, .fnl or .py file in the plugin's folder",
        )


def _quote_hint(key: str) -> str:
    return 'write it in quotes: version: "1.0"' if key == "version" else ""

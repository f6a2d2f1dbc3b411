"""`cru vault init FOLDER`: the folder is made, and the user's settings name it."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from cru.core.base.config.edit import set_value
from cru.core.base.config.layers import read_layer
from cru.features.vault import VaultError, VaultSettings
from cru.features.vault.vault import Vault, find_vault


def init_vault(home: Path, folder: str, settings: VaultSettings) -> tuple[Vault, str]:
    """The vault, and the folder that was the vault before, "" if there was none or the same. Other settings of `[vault]` stay.
    Raises VaultError, ConfigError.

    settings: those that hold now
    """
    if not folder.strip():
        raise VaultError("the folder of the notes has no name", "cru vault init ~/notes")
    root = Path(os.path.realpath(os.path.expanduser(folder)))
    if root == home or home in root.parents:
        raise VaultError(f"{root} belongs to cru itself", "choose a folder of your own")
    try:
        root.mkdir(parents=True, exist_ok=True)
        os.listdir(root)
    except FileExistsError as error:
        raise VaultError(f"{root} is no folder", "choose another name") from error
    except OSError as error:
        raise VaultError(f"{root} cannot be used: {error.strerror or error}") from error
    config = home / "config.toml"
    layer = read_layer("user", config)
    table = layer.data.get("vault") if layer is not None else None
    before = str(table.get("path", "")) if isinstance(table, dict) else ""
    set_value(config, "vault.path", str(root))
    vault = find_vault(replace(settings, path=str(root)), home)
    return vault, "" if os.path.realpath(os.path.expanduser(before)) == str(root) else before

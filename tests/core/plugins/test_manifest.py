"""Manifests: what is read, and every way to write one that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from cru.core.plugins.discovery.manifest import LIMIT_BYTES, Dependency, Manifest, manifest_file, read_manifest
from cru.core.plugins.errors import BadManifest

WHOLE = """\
name: daily-notes
version: "1.2.0"
description: One note a day.
author: Somebody
license: MIT
main: run.lua
enabled: false
capabilities: [filesystem, kiln, web_socket, intercept_tools]
dependencies:
  - name: todo-list
  - {name: graph, optional: true, version: ">= 1"}
homepage: https://example.org
exports: {auto_discover: true}
"""


def written(tmp_path: Path, content: str | bytes) -> Path:
    file = tmp_path / "demo" / "plugin.yaml"
    file.parent.mkdir()
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_a_manifest_is_read_and_keys_that_nobody_knows_are_ignored(tmp_path: Path) -> None:
    assert read_manifest(written(tmp_path, WHOLE)) == Manifest(
        "daily-notes", "1.2.0", "One note a day.", "Somebody", "MIT", "run.lua", False,
        ("filesystem", "vault", "websocket", "intercept_tools"), (Dependency("todo-list"), Dependency("graph", True)),
    )  # fmt: skip


def test_what_is_not_said_is_as_usual_and_the_name_is_the_folders(tmp_path: Path) -> None:
    assert read_manifest(written(tmp_path, "description: short\n")) == Manifest("demo", description="short")


def test_of_several_manifests_the_first_counts(tmp_path: Path) -> None:
    assert manifest_file(tmp_path) is None
    for name in ("manifest.yml", "manifest.yaml", "plugin.yml", "plugin.yaml"):
        (tmp_path / name).write_text("")
        assert manifest_file(tmp_path) == tmp_path / name


# content → what is said, beside the file
BAD: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "half written": ("name: demo\ncapabilities: [shell,\n", (":3: not YAML",)),
    "binary": (b"\x00\x01\x02\xff\xfe" * 50, ("not UTF-8",)),
    "control characters": ("name: a\x00b", ("not YAML",)),
    "not UTF-8": (b"name: caf\xe9", ("not UTF-8", "save the file as UTF-8")),
    "empty": ("", ("expected `object`, got `null`",)),
    "a list": ("- name: demo", ("expected `object`, got `array`",)),
    "a name of a wrong type": ("name: 5", ("name: expected `str`, got `int`",)),
    "a version without quotes": ("version: 1.0", ("version: expected `str`, got `float`", "quotes")),
    "a version of five parts": ("version: 1.2.3.4.5", ("version: '1.2.3.4.5'", "one to four parts")),
    "an empty part": ("version: 1..2", ("version: '1..2'",)),
    "enabled is a word": ('enabled: "yes"', ("enabled: expected `bool`, got `str`",)),
    "capabilities is a word": ("capabilities: shell", ("capabilities: expected `array`, got `str`",)),
    "a capability is a number": ("capabilities: [shell, 5]", ("capabilities[1]: expected `str`, got `int`",)),
    "an unknown capability": ("capabilities: [netwrok]", ("unknown capability 'netwrok'", "did you mean `network`?")),
    "a dependency is a word": ("dependencies: [other]", ("dependencies[0]: expected `object`, got `str`",)),
    "a dependency without a name": ("dependencies: [{optional: true}]", ("missing required field `name`",)),
    "a name against the rule": ("name: Demo", ("name: 'Demo'", "begins with a small letter")),
    "a name that ends wrongly": ("name: demo-", ("name: 'demo-'",)),
    "a name with a line break": ('name: "demo\\n"', ("name: 'demo\\n'",)),
    "a name that is too long": (f"name: {'a' * 65}", ("is no name for a plugin",)),
    "a main file outside": ("main: ../../evil.lua", ("main: '../../evil.lua'", "in the plugin's folder")),
    "a main file anywhere": ("main: /tmp/evil.lua", ("main: '/tmp/evil.lua'",)),
    "a main file in no language": ("main: run.sh", ("main: 'run.sh'", ".lua, .fnl or .py")),
    "code": ("name: !!python/object/apply:os.system [true]", ("not YAML",)),
    "a date that is none": ("version: !!timestamp 2024-13-45", ("not YAML", "month")),
    "a word of YAML 1.1": ("enabled: yes", ("enabled: expected `bool`, got `str`",)),
    "a value that does not fit its tag": ("enabled: !!bool x", ("not YAML", "does not fit its tag")),
    "nested too deeply": ("[" * 1_000, ("not YAML",)),
    "too large": ("#" * (LIMIT_BYTES + 1), ("too large",)),
}


@pytest.mark.parametrize("case", BAD)
def test_a_manifest_that_is_wrong_is_told_with_file_and_key(tmp_path: Path, case: str) -> None:
    content, expected = BAD[case]
    file = written(tmp_path, content)
    with pytest.raises(BadManifest) as caught:
        read_manifest(file)
    text = f"{caught.value.message} ({caught.value.hint})"
    assert text.startswith(str(file)) and "\n" not in text
    assert all(part in text for part in expected), text


def test_a_manifest_that_repeats_itself_without_end_is_small_and_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    file = written(tmp_path, "\n".join([*lines, "capabilities: *a29"]))
    with pytest.raises(BadManifest, match=r"capabilities\[0\]: expected `str`, got `array`"):
        read_manifest(file)


def test_a_folder_in_a_manifests_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "plugin.yaml").mkdir()
    with pytest.raises(BadManifest, match="cannot be read: Is a directory"):
        read_manifest(tmp_path / "plugin.yaml")

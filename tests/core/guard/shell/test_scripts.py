"""Scripts of sed that are taken for plain, held against sed itself: in its sandbox it refuses what runs or writes something."""

from __future__ import annotations

import os
import random
import shutil
import subprocess

import pytest

from cru.core.guard.shell.scripts import is_plain_awk, is_plain_sed

PIECES = (
    *(
        "s",
        "/",
        "/",
        "/",
        "e",
        "w",
        "p",
        "d",
        "g",
        "\\",
        "\n",
        ";",
        "{",
        "}",
        "[",
        "]",
        "a",
        "i",
        "c",
        "b",
        "t",
        ":",
        "x",
        "y",
        "!",
    ),
    *(
        "$",
        "1",
        ",",
        "#",
        " ",
        "|",
        "&",
        "I",
        "M",
        "N",
        "q",
        "l",
        "F",
        "~",
        "+",
        "^",
        "n",
        "Q",
        "q5",
        "a\\",
        "w F",
        "e id",
    ),
    *("s/x/y/", "/x/", "s/a/b/e", "\\,x,", "y/a/b/"),
)


def _has_sandbox() -> bool:
    sed = shutil.which("sed")
    return sed is not None and subprocess.run([sed, "--sandbox", "p", os.devnull], capture_output=True).returncode == 0


@pytest.mark.skipif(not _has_sandbox(), reason="needs GNU sed")
def test_sed_finds_nothing_to_refuse_in_a_plain_script() -> None:
    seed = random.randrange(2**32)
    draw = random.Random(seed)
    plain = 0
    while plain < 60:
        script = "".join(draw.choices(PIECES, k=draw.randint(1, 9)))
        if is_plain_sed(script):
            plain += 1
            done = subprocess.run(["sed", "--sandbox", "-n", "-e", script, os.devnull], capture_output=True, text=True)
            assert "sandbox" not in done.stderr, (seed, script)


def test_no_text_at_all_ends_the_reading_with_an_error() -> None:
    draw = random.Random(1)
    for _ in range(2000):
        script = "".join(draw.choices(PIECES, k=draw.randint(0, 12)))
        assert is_plain_sed(script) in (True, False)
        assert is_plain_awk(script) in (True, False)

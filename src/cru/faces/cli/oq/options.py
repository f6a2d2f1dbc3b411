"""What follows `cru oq`: switches as jq has them, the filter, and files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.flags import UsageProblem
from cru.features.formats.convert import is_json

HELP = """\
cru oq [SWITCHES] FILTER [FILE…]    what the filter (in the language of jq) makes of each document of the files, or of standard input

  -p FORMAT          the format of the input: json, yaml, toml or toon (by itself: the file's extension, then its content)
  -o FORMAT          the format of the output (json)
  -r                 text as it is, without quotes
  -j                 the same, and no end of line
  -c                 JSON on one line
  -n                 no input: the filter runs once, on null
  -s                 all documents as one array
  -e                 the exit status tells what came last: 1 for false and null, 4 for nothing
  --arg NAME VALUE   $NAME is this text
  --argjson NAME V   $NAME is this JSON

Exit status: 0; 2 for a command line or an input that cannot be read; 3 for what is no filter; 5 for a filter that failed.
"""
FORMATS = ("json", "yaml", "toml", "toon")
SWITCHES = ("-r", "-j", "-c", "-n", "-s", "-e")
LONG = {
    "--raw-output": "-r", "--join-output": "-j", "--compact-output": "-c", "--null-input": "-n", "--slurp": "-s",
    "--exit-status": "-e", "--output-format": "-o", "--input-format": "-p",
}  # fmt: skip
MOST_FILES = 1_000_000


class OqOptions(Struct, frozen=True):
    """A call of `cru oq`.

    files: their paths; none: standard input
    input, output: names of formats; input "" is found out
    variables: values by name, without the `$`
    """

    filter: str
    files: list[str]
    input: str
    output: str
    raw: bool
    join: bool
    compact: bool
    null_input: bool
    slurp: bool
    exit_status: bool
    variables: dict[str, Any]


def read_options(words: Sequence[str]) -> OqOptions | None:
    """The options; None if it was help that was asked for, and shown. Raises UsageProblem."""
    variables, rest, behind = _split(words)
    most = MOST_FILES - len(behind)
    args = CommandArguments("oq", rest, help=HELP, values=("-p", "-o"), switches=SWITCHES, most=most)
    if args.show_help():
        return None
    plain = args.words + behind
    if not plain:
        raise UsageProblem("`cru oq` needs a filter", "cru oq '.items[] | .name' data.yaml")
    if not _is_text(plain[0]):
        raise UsageProblem("the filter is not UTF-8 text")
    return OqOptions(
        filter=plain[0],
        files=plain[1:],
        input=_format(args, "-p", ""),
        output=_format(args, "-o", "json"),
        raw=args.has("-r") or args.has("-j"),
        join=args.has("-j"),
        compact=args.has("-c"),
        null_input=args.has("-n"),
        slurp=args.has("-s"),
        exit_status=args.has("-e"),
        variables=variables,
    )


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _format(args: CommandArguments, name: str, default: str) -> str:
    format = args.value(name, default).lower()
    format = "yaml" if format == "yml" else format
    if format not in (*FORMATS, default):
        raise UsageProblem(f"{name}: unknown format {format}", f"formats are {', '.join(FORMATS)}")
    return format


def _split(words: Sequence[str]) -> tuple[dict[str, Any], list[str], list[str]]:
    """The variables, the words before `--` (switches one by one, by their short names), and those behind it."""
    variables: dict[str, Any] = {}
    before: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return variables, before, rest
        if word in ("--arg", "--argjson"):
            name, value = _variable(word, rest)
            variables[name] = value
        else:
            before += _single(word)
    return variables, before, []


def _single(word: str) -> list[str]:
    """`-rc` is `-r -c`, `-oyaml` is `-o yaml`, `--slurp` is `-s`."""
    name, mark, value = word.partition("=")
    if name in LONG:
        return [LONG[name] + mark + value]
    if word[:2] in ("-o", "-p") and len(word) > 2 and word[2] != "=":
        return [word[:2], word[2:]]
    letters = [f"-{letter}" for letter in word[1:]]
    return letters if word[:1] == "-" and len(word) > 2 and set(letters) <= set(SWITCHES) else [word]


def _variable(word: str, rest: list[str]) -> tuple[str, Any]:
    if len(rest) < 2:
        raise UsageProblem(f"{word} needs a name and a value", f"cru oq {word} NAME VALUE FILTER")
    name, value = rest.pop(0), rest.pop(0)
    if not name.isidentifier() or not name.isascii() or name == "ENV":
        raise UsageProblem(f"{word}: {name!r} cannot be the name of a variable")
    if not _is_text(value):
        raise UsageProblem(f"{word} {name}: the value is not UTF-8 text")
    if word == "--arg":
        return name, value
    if not is_json(value):
        raise UsageProblem(f"--argjson {name}: not JSON: {value}")
    return name, json.loads(value)

"""What a command line of `cru batch` asks for: its items with all defaults filled in, and how they are to be run."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from zlib import crc32

from msgspec import Struct

from cru.core.base.config.secret import holds_secret
from cru.core.base.files.regular import read_regular
from cru.core.guard.rules.modes import check_mode
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import await_input
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.fleet.common import at_least, dollars_of, say_line, seconds_of
from cru.faces.cli.fleet.item_checks import ItemChecks
from cru.faces.cli.run_options import home_path, require_utf8, working_directory
from cru.faces.cli.set_flag import add_setting
from cru.features.fleet import FleetError
from cru.features.fleet.batch import ItemBatch
from cru.features.fleet.items import ID, ItemDefaults, batch_name, read_items
from cru.features.fleet.records import BatchItem, Setting, WorkStatus

VALUES = (
    "--name", "--model", "--mode", "--agent", "--seconds", "--fuel", "--max-cost", "--set", "--on-interrupted", "--max-deaths",
    "--parallel", "--out", "--priority", "--shard",
)  # fmt: skip
SWITCHES = (
    "--dry-run", "--retry", "--queue", "--skip-bad", "--strict-hooks", "--forget", "--json", "--trust", "--shared", "--fetch",
)  # fmt: skip
SHORT = {"-s": "--set", "-t": "--trust", "--concurrency": "--parallel"}
POLICIES = ("ask-model", "retry", "fail")
PART = re.compile(r"(.+)\.(\d+)-of-(\d+)")
"""The name of a journal of a part."""
_NOT_AGAIN = ("--dry-run", "--retry", "--queue", "--forget", "--fetch")


class BatchPlan(Struct, frozen=True):
    """What a command line asks for. file: "" if the items are those that the batch has; command: what to type to go on."""

    name: str
    file: str
    items: tuple[tuple[int, BatchItem], ...]
    parallel: int
    max_deaths: int
    command: str


def make_plan(args: CommandArguments, parsed: Parsed, batch: ItemBatch) -> BatchPlan:
    """Without a file the items are what the queue has of the batch. Raises UsageProblem, BadItems, FleetError."""
    name = name_of(args)
    options = _item_options(args)
    parallel, deaths = at_least(args, "--parallel", 4, 1), at_least(args, "--max-deaths", 5, 1)
    file = args.words[0] if args.words else ""
    if file:
        items = _read_items(file, ItemDefaults(name, working_directory(), options), args, parsed, batch)
    else:
        items = tuple(batch.items())
        if not items:
            raise FleetError(f"nothing is known of a batch {name}", "cru batch lists them; a new one needs its file")
    return BatchPlan(name, file, items, parallel, deaths, _same_command(args, parsed))


def _item_options(args: CommandArguments) -> BatchItem:
    """Raises UsageProblem."""
    policy = args.value("--on-interrupted", "")
    if policy and policy not in POLICIES:
        raise UsageProblem(f"--on-interrupted: there is no choice `{policy}`", f"one of: {', '.join(POLICIES)}")
    mode = args.value("--mode", "trust" if args.has("--trust") else "")
    if mode:
        check_mode(mode)
        if args.has("--trust") and mode != "trust":
            raise UsageProblem(f"-t and --mode {mode} do not go together", "-t is --mode trust")
    settings: dict[str, Setting] = {}
    for text in args.all("--set"):
        add_setting({}, text)
        key, _, value = text.partition("=")
        settings[key] = value
    return BatchItem(
        "", model=args.value("--model", ""), mode=mode, seconds=seconds_of(args, "--seconds", 0.0), set=settings,
        fuel=at_least(args, "--fuel", 0, 0), on_interrupted=policy, strict_hooks=args.has("--strict-hooks"),  # type: ignore[arg-type]
        agent=args.value("--agent", ""), max_cost=dollars_of(args, "--max-cost"),
    )  # fmt: skip


def _read_items(
    file: str, defaults: ItemDefaults, args: CommandArguments, parsed: Parsed, batch: ItemBatch
) -> tuple[tuple[int, BatchItem], ...]:
    """Raises BadItems, if bad lines are not to be left out."""
    read = read_items(_read(file), defaults)
    settled = _settled(batch, args.has("--retry"))
    if args.has("--queue"):  # other machines have the folders, and maybe the agents
        settled = {item.id for _, item in read.items}
    read = ItemChecks(home_path(parsed)).check(read, settled)
    if not args.has("--skip-bad"):
        read.require_good(file)
    for problem in read.problems:
        say_line(f"{file}:{problem.line} is left out: {problem.text}")
    part, count = shard_of(args)
    return tuple(pair for pair in read.items if crc32(pair[1].context.encode()) % count == part - 1)


def _settled(batch: ItemBatch, retry: bool) -> set[str]:
    """The items that are not run any more."""
    results = {row.id: row.result for row in batch.rows() if row.result is not None}
    return {item for item, result in results.items() if not retry or result.status is WorkStatus.DONE}


def shard_of(args: CommandArguments) -> tuple[int, int]:
    """Which part of how many this batch is, from 1: items of one conversation are in one part. Raises UsageProblem."""
    text = args.value("--shard", "1/1")
    part, _, count = text.partition("/")
    if not (
        part.isascii() and part.isdecimal() and count.isascii() and count.isdecimal() and 1 <= int(part) <= int(count)
    ):
        raise UsageProblem(f"--shard needs a part and a number of parts, such as 1/8, not {text}")
    return int(part), int(count)


def part_of(args: CommandArguments) -> str:
    """What the name of the journal of a part ends in, "" of a whole batch. Raises UsageProblem."""
    part, count = shard_of(args)
    return f".{part}-of-{count}" if count > 1 else ""


def name_of(args: CommandArguments) -> str:
    """The name of the batch. Raises UsageProblem."""
    name = args.value("--name", "")
    if not name:
        if args.words[0] == "-":
            raise UsageProblem("items from standard input need a name", "cru batch - --name NAME")
        return batch_name(Path(args.words[0]))
    if not ID.fullmatch(name):
        raise UsageProblem(f"--name has letters, digits, dots, dashes and underscores, 64 at most: {name}")
    if part := PART.fullmatch(name):  # its prompts have the keys of the whole batch
        raise UsageProblem(f"{name} is a part of a batch", "--name {} --shard {}/{}".format(*part.groups()))
    return name


def _read(file: str) -> bytes:
    if file == "-":
        await_input("the items of the batch", "or name their file: cru batch FILE")
        return sys.stdin.buffer.read()
    require_utf8(file)
    return read_regular(file)


def _same_command(args: CommandArguments, parsed: Parsed) -> str:
    """What goes on with the batch. What came on standard input is in the queue, and so are its settings."""
    home = parsed.last("home")
    words = ["cru", *(["--home", home] if home else []), "batch", *(word for word in args.words if word != "-")]
    for name in VALUES:
        words += [
            word for value in args.all(name) if not (name == "--set" and holds_secret(value)) for word in (name, value)
        ]
    words += [name for name in SWITCHES if args.has(name) and name not in _NOT_AGAIN]
    return shlex.join(words)

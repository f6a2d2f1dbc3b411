"""`cru hooks log`: what hooks did, one line a firing, the newest last."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

from cru.core.conversations.home import Home
from cru.core.hooks.records import FiringRecord, masked_json, read_lines
from cru.core.hooks.report.wording import describe_firing
from cru.core.tools.secret_variables import masked
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.hooks.inventory import find_hook, load_inventory
from cru.faces.cli.run_options import context_name, open_home

HELP = """\
cru hooks log              what hooks did in this context, newest last
cru hooks log ID           one hook only; its name or the beginning of its id is enough
cru hooks log -n N         the last N (20 by default, 0 = all)
cru hooks log --full       with what they were given and what they printed
cru hooks log --json       as JSON, one object a line
"""
MOST = 20


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """Raises UsageProblem if the words do not fit it, NoEntry."""
    args = CommandArguments(
        "hooks", ("log", *words), values=("-n",), help=HELP, switches=("--json", "--full"), verbs=("log",), most=2
    )
    if args.show_help():
        return 0
    most = args.number("-n", MOST)
    if most < 0:
        raise args.wrong("-n needs a number from 0 on")
    home = open_home(parsed)
    name = context_name(parsed, home)
    id = args.words[1] if len(args.words) > 1 else ""
    records = list(islice(_read_records(home, name, id), most or None))
    for record in reversed(records):
        if args.has("--json"):
            show(masked_json(record))
        else:
            show("\n".join(_render(record, full=args.has("--full"))))
    if not records and id:
        find_hook(load_inventory(parsed, tell=False).loaded, id)
    if not records and not args.has("--json"):
        show(f"no hook{f' {id}' if id else ''} has run in the context {name}; `cru hooks list` shows what there is")
    return 0


def _read_records(home: Home, name: str, id: str) -> Iterator[FiringRecord]:
    if home.exists(name):
        folder = home.open(name).folder
        yield from (
            record
            for record in read_lines(folder)
            if isinstance(record, FiringRecord) and (record.id.startswith(id) or record.label == id)
        )


def _render(record: FiringRecord, *, full: bool) -> list[str]:
    time_text = time.strftime("%m-%d %H:%M:%S", time.localtime(record.time))
    subject = f"{record.event} {record.subject}".rstrip()
    if record.agent:
        subject += f" (sub-agent {record.agent_type} {record.agent})"
    label = "" if record.label == record.id else f" {one_line(masked(record.label), 40)}"
    text = masked(describe_firing(record))
    lines = [
        f"{time_text}  #{record.seq}  {record.id}{label}  {one_line(subject)}: {one_line(text, 0 if full else 160)}"
    ]
    if full:
        lines.append(f"  {record.where}")
        for what in ("stdin", "stdout", "stderr"):
            text = masked(getattr(record, what).rstrip("\n"))
            lines += [f"  {what}:", *(f"    {line}" for line in text.split("\n"))] if text else []
        if record.cut:
            lines.append("  (cut: more was written)")
    return lines

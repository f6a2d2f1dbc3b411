"""The part of docs/hooks.md that the tables write: what differs, and why."""

from __future__ import annotations

from tests.kit.differential.cases import tables


def kept() -> str:
    """One row a difference, under the counts of each program."""
    counts, rows = [], ["| program | there | in cru |", "|---|---|---|"]
    for table in tables():
        kept = [case for case in table.cases if case.difference]
        counts.append(f"- {table.program} {table.version}: {len(table.cases)} facts, {len(kept)} differ")
        rows += [f"| {table.program} | {case.about} | {case.difference.reason} |" for case in kept if case.difference]
    return "\n".join([*counts, *(["", *rows] if len(rows) > 2 else [])])

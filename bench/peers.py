"""cru beside every other agent that is installed (install_peers.sh), and beside the floors: one table and one picture of docs/performance.md."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from typing import Any

from bench import run_peer, runners
from bench.run_peer import B as HOME, PEERS, Peer

ROUNDS = 20
FIGURES = ("ttfr_ms", "turn_ms", "wall", "cpu", "rss_mb", "exit_ms", "body_first", "foreign")
"""Of a run of ROUNDS rounds, as run_peer.one gives them."""
LEFT_OUT = ("codex", "claude-bare")
"""Other ways to start a peer that is measured anyway."""


def installed() -> Iterator[Peer]:
    """Those whose program is there."""
    for name, kind in PEERS.items():
        peer = kind()
        if name not in LEFT_OUT and runners.is_there(peer):
            yield peer


def measure(reps: int) -> dict[str, dict[str, Any]]:
    """What each peer took, by name: medians of its runs, of which those at one place in the row follow each other.

    FIGURES, with `ttfr_ms_all` and `turn_ms_all` of each run; `https_ms`: the start over TLS, None if it does not trust the authority;
    `version`; `done`: whether every run came to its end.
    """
    peers = list(installed())
    runs: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in peers}
    over_tls: dict[str, list[float | None]] = {peer.name: [] for peer in peers}
    for number in range(reps + 1):  # the first one warms up
        for peer in peers:
            run_peer.quiet(20)
            run, _ = run_peer.one(peer, runners.mock(), ROUNDS if peer.multi else 0, timeout=120)
            run_peer.quiet(20)
            tls, _ = run_peer.one(peer, runners.mock(), 0, timeout=60, tls=True)
            print(f"{peer.name}: {run['ttfr_ms']} ms, {run['turn_ms']} ms a round, https {tls['ttfr_ms']} ms", flush=True)
            if number:
                runs[peer.name].append(run)
                over_tls[peer.name].append(tls["ttfr_ms"])
    return {peer.name: summary(peer, runs[peer.name], over_tls[peer.name]) for peer in peers}


def summary(peer: Peer, runs: list[dict[str, Any]], over_tls: list[float | None]) -> dict[str, Any]:
    known: dict[str, Any] = {figure: median([run[figure] for run in runs]) for figure in FIGURES}
    known |= {f"{figure}_all": [run[figure] for run in runs] for figure in ("ttfr_ms", "turn_ms")}
    known["https_ms"] = median(over_tls)
    known["version"] = version(peer)
    known["done"] = all(run["done"] for run in runs)
    return known


def median(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return statistics.median(there) if len(there) == len(values) else None


def version(peer: Peer) -> str:
    if peer.name == "cru" or peer.ver != ["--version"]:
        return ""
    words = run_peer.version(peer, reps=1)[1].split()
    return next((word.strip("(),v") for word in words if any(char.isdigit() for char in word)), "")


def table(known: dict[str, dict[str, Any]]) -> str:
    """In Markdown, the fastest round first."""
    if not known:
        return "\nNot measured here.\n"
    rows = sorted(known.items(), key=lambda item: item[1]["turn_ms"] or float("inf"))
    text = (
        "| agent | start → first request, ms | over https, ms | a round, ms | 20 rounds, s | processor, s | memory, MB | "
        "first request, KiB | others' load |\n|---|---|---|---|---|---|---|---|---|\n"
    )
    for name, figures in rows:
        cells = [
            f"{name} {figures['version']}".strip() + ("" if figures["done"] else " (not to the end)"),
            spread(figures, "ttfr_ms", 0), cell(figures["https_ms"], 0), spread(figures, "turn_ms", 1), cell(figures["wall"], 2),
            cell(figures["cpu"], 2), cell(figures["rss_mb"], 0), cell(figures["body_first"] and figures["body_first"] / 1024, 1),
            cell(figures["foreign"], 2),
        ]  # fmt: skip
        text += f"| {' | '.join(cells)} |\n"
    return text


def cell(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def spread(figures: dict[str, Any], name: str, digits: int) -> str:
    """The median, with the least and the most."""
    values = [value for value in figures[f"{name}_all"] if value is not None]
    if not values or figures[name] is None:
        return "–"
    return f"{cell(figures[name], digits)} ({cell(min(values), digits)} – {cell(max(values), digits)})"


WIDTH, LEFT, BAR, GAP = 880, 150, 16, 8
COLOUR, OTHER, TEXT = "#2f6fdd", "#9aa4b2", "#57606a"


def picture(known: dict[str, dict[str, Any]]) -> str:
    """Both times of each agent as bars on a scale of powers of ten, in SVG."""
    half = WIDTH // 2
    names = sorted((name for name in known if known[name]["ttfr_ms"]), key=lambda name: known[name]["ttfr_ms"])
    height = 50 + len(names) * (BAR + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" fill="{TEXT}">',
        *bars(known, names, "ttfr_ms", "start → first request, ms (logarithmic)", 0),
        *bars(known, names, "turn_ms", "a round with a tool call, ms (logarithmic)", half + 20, labels=False),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def bars(known: dict[str, dict[str, Any]], names: list[str], figure: str, title: str, left: int, *, labels: bool = True) -> Iterator[str]:
    import math

    begin = left + (LEFT if labels else 0)
    room = (WIDTH // 2 if labels else WIDTH) - begin - 60
    values = [known[name][figure] for name in names if known[name][figure]]
    low, high = math.log10(min(values)) - 0.3, math.log10(max(values))
    yield f'<text x="{begin}" y="20" font-weight="bold">{title}</text>'
    for number, name in enumerate(names):
        top = 36 + number * (BAR + GAP)
        if labels:
            yield f'<text x="{begin - 8}" y="{top + 13}" text-anchor="end">{name}</text>'
        value = known[name][figure]
        if not value:
            yield f'<text x="{begin + 4}" y="{top + 13}">–</text>'
            continue
        length = max(2, round(room * (math.log10(value) - low) / (high - low)))
        yield f'<rect x="{begin}" y="{top}" width="{length}" height="{BAR}" rx="2" fill="{COLOUR if name == "cru" else OTHER}"/>'
        yield f'<text x="{begin + length + 5}" y="{top + 13}">{value:,.{0 if value >= 20 else 1}f}</text>'

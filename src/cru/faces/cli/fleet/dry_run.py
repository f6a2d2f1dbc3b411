"""`cru batch --dry-run`: what would be asked, and what that costs at least."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.bundled import BASE
from cru.core.base.config.layers import Settings
from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import Usage
from cru.core.compose.start import Start, load_settings, project_root
from cru.core.compose.wiring import built_in_tools
from cru.core.models import ModelSettings
from cru.core.models.prices import table_cost
from cru.core.models.registry import ModelChoice, choose_model
from cru.core.tools.builtin import ToolRegistry
from cru.core.turn.spending import format_cost
from cru.faces.cli.console import show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.fleet.batch_plan import BatchPlan
from cru.faces.cli.fleet.common import count_items
from cru.faces.cli.run_options import home_path
from cru.features.fleet.batch import ItemBatch
from cru.features.fleet.items import estimate_tokens
from cru.features.fleet.records import BatchItem, TaskRow, TaskState

BYTES_PER_TOKEN = 4


class ItemEstimate(Struct, frozen=True):
    """The first request of an item. cost: US dollars, None: not known; model: which is asked; tokens: of the request; problem: why it
    cannot be asked as things are."""

    model: str
    tokens: int
    cost: float | None
    problem: str = ""


def show_plan(plan: BatchPlan, batch: ItemBatch, parsed: Parsed) -> int:
    rows = batch.rows()
    batch.close()
    finished = {row.id for row in rows if row.state is TaskState.FINISHED}
    left = [(line, item) for line, item in plan.items if item.id not in finished]
    lines = [
        f"batch {plan.name}: {count_items(len(plan.items))}, {len(plan.items) - len(left)} finished, {len(left)} to ask",
        f"about {estimate_tokens(left):,} tokens of prompts and attachments; the system prompt, tools and answers come on top",
    ]
    estimates = asyncio.run(_estimate(home_path(parsed), [item for _, item in left]))
    lines += [*_least_cost(estimates), *_cost_so_far(rows, len(left))]
    models = ", ".join(dict.fromkeys(estimate.model for estimate in estimates))
    show("\n".join([*lines, *([f"asked of: {models}"] if left else [])]))
    return 0


def _least_cost(estimates: Sequence[ItemEstimate]) -> list[str]:
    """What one request an item costs, without its answer."""
    if not estimates:
        return []
    known = [estimate for estimate in estimates if estimate.cost is not None]
    cost, tokens = sum(estimate.cost or 0.0 for estimate in known), sum(estimate.tokens for estimate in known)
    lines = []
    if known:
        lines.append(
            f"at least {format_cost(cost)}: one request for each of {count_items(len(known))}, about {tokens:,} tokens with the "
            "system prompt and tools of cru; answers, further requests and sub-agents come on top"
        )
    unknown = ", ".join(
        dict.fromkeys(estimate.model for estimate in estimates if estimate.cost is None and not estimate.problem)
    )
    if unknown:
        lines.append(f'the price of {unknown} is not known: [models."ID"] input_price and output_price say it')
    problems = dict.fromkeys((estimate.model, estimate.problem) for estimate in estimates if estimate.problem)
    return lines + [f"{model} cannot be asked as things are: {problem}" for model, problem in problems]


def _cost_so_far(rows: Iterable[TaskRow], left: int) -> list[str]:
    """By what items of this batch have cost that are finished, as far as all of it is known."""
    totals = [row.result.tokens for row in rows if row.result is not None]
    costs = [total.cost for total in totals if total.cost is not None and not total.unpriced]
    if not costs or not left:
        return []
    mean = sum(costs) / len(costs)
    return [
        f"about {format_cost(mean * left)}, if they cost what the {len(costs)} finished ones did ({format_cost(mean)} each)"
    ]


async def _estimate(home: Path, items: Sequence[BatchItem]) -> list[ItemEstimate]:
    choices: dict[tuple[str, ...], tuple[Settings | None, ModelChoice | ItemEstimate]] = {}
    estimates: list[ItemEstimate] = []
    for item in items:
        key = (
            item.model,
            item.agent,
            item.cwd,
            *(f"{name}={value}" for name, value in item.set.items() if name == "model"),
        )
        if key not in choices:
            choices[key] = await _choose(home, item)
        estimates.append(_estimate_item(item, *choices[key]))
    return estimates


async def _choose(home: Path, item: BatchItem) -> tuple[Settings | None, ModelChoice | ItemEstimate]:
    """The settings of its run and its model; in place of a model that cannot be asked why that is so."""
    cwd = Path(item.cwd)
    model = item.model or str(item.set.get("model", ""))
    overrides = {"model": model} if model else {}
    start = Start(
        home, item.context, dict(os.environ), cwd, project_root(cwd, os.environ, home), overrides, agent=item.agent
    )
    name = model or "the configured model"
    try:
        settings, _, _ = load_settings(start)
        chosen = settings.of(ModelSettings)
        members = chosen.categories.get(chosen.model)
        chosen = msgspec.structs.replace(chosen, model=members[0]) if members else chosen
        return settings, await choose_model(chosen, os.environ, home / "models", lambda text: None)
    except CruError as error:
        return None, ItemEstimate(name, 0, None, error.message)


def _estimate_item(item: BatchItem, settings: Settings | None, choice: ModelChoice | ItemEstimate) -> ItemEstimate:
    if isinstance(choice, ItemEstimate):
        return choice
    assert settings is not None
    tokens = estimate_tokens([(0, item)]) + _fixed_tokens(settings)
    usage = Usage(input=tokens)
    cost = (
        choice.price.cost(usage)
        if choice.price is not None
        else table_cost(choice.provider, choice.model, choice.base_url, usage)
    )
    return ItemEstimate(f"{choice.provider}:{choice.model}", tokens, cost)


def _fixed_tokens(settings: Settings) -> int:
    """The system prompt and the tools that come with cru: what each request has, however short its prompt is."""
    specs = ToolRegistry([built_in_tools(settings)]).specs()
    return (len(BASE.encode()) + len(msgspec.json.encode(specs))) // BYTES_PER_TOKEN

"""What requests have cost: counted for a prompt, for a session, and for all above them; and the budgets that this is held against
(docs/decisions/models.md)."""

from collections.abc import Callable, Iterator
from enum import Enum
from math import inf
from time import monotonic
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.messages import Usage


class BudgetLimits(Struct, frozen=True):
    """What may be used; 0 = any amount.

    max_tokens: of requests and replies, cached ones too
    max_cost: US dollars
    max_seconds: on the clock
    """

    max_tokens: int = 0
    max_cost: float = 0.0
    max_seconds: float = 0.0


NO_LIMITS = BudgetLimits()


class BudgetSettings(BudgetLimits, frozen=True):
    """`[budget]`: of one prompt, and `[budget.session]`. strict: a request whose price is not known ends what has a max_cost."""

    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        f"{table}.{name}": (0, inf) for table in ("budget", "budget.session") for name in BudgetLimits.__struct_fields__
    }

    session: BudgetLimits = BudgetLimits()
    strict: bool = False


class UsageTotals(Struct, frozen=True):
    """The sum of many requests.

    cost: US dollars, as far as it is known; None: of no request
    unpriced: requests whose cost is not known
    estimated: requests whose tokens the server did not count
    """

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = None
    unpriced: int = 0
    estimated: int = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output

    def plus(self, usage: Usage) -> "UsageTotals":
        """With one request more."""
        is_unpriced = usage.cost is None and usage.tokens > 0
        return UsageTotals(
            self.requests + 1, self.input + usage.input, self.output + usage.output,
            self.cache_read + usage.cache_read, self.cache_write + usage.cache_write,
            self.cost if usage.cost is None else (self.cost or 0.0) + usage.cost,
            self.unpriced + is_unpriced, self.estimated + usage.is_estimated,
        )  # fmt: skip

    def joined(self, other: "UsageTotals") -> "UsageTotals":
        """With the requests of another sum."""
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return UsageTotals(
            self.requests + other.requests, self.input + other.input, self.output + other.output,
            self.cache_read + other.cache_read, self.cache_write + other.cache_write,
            sum(known) if known else None, self.unpriced + other.unpriced, self.estimated + other.estimated,
        )  # fmt: skip


class BudgetKind(Enum):
    """Which limit it is: the name of its setting."""

    TOKENS = "max_tokens"
    COST = "max_cost"
    SECONDS = "max_seconds"
    PRICE = "strict"


class ScopeKind(Enum):
    """Whose budget it is, in words."""

    PROMPT = "this prompt"
    SESSION = "this session"
    TASK = "this task"


class SpendingScope(Struct):
    """Something that has a budget: a prompt, a session, a task. What is counted for it counts for the one above it too.

    initial_limits: its limits as they were set
    limits: the same with what a person added
    began: by the clock
    refused: a person said no to more
    """

    kind: ScopeKind
    initial_limits: BudgetLimits
    limits: BudgetLimits
    began: float
    above: "SpendingScope | None" = None
    strict: bool = False
    totals: UsageTotals = UsageTotals()
    refused: bool = False

    def chain(self) -> "Iterator[SpendingScope]":
        """This one and those above it."""
        scope: SpendingScope | None = self
        while scope is not None:
            yield scope
            scope = scope.above


class BudgetReached(Struct, frozen=True):
    """A limit that is used up: `used` of `limit`, in the setting's unit."""

    scope: SpendingScope
    kind: BudgetKind
    used: float
    limit: float


class UsageLedger:
    """The accounts of one agent. Agents below it get theirs from `child`, so that what they use counts here. All methods belong to the
    loop's thread.

    on_usage: hears of each request of this agent
    needs_cost: somebody reads the cost, so it is worth the loading of a table of prices
    has_told_unpriced: a person knows that a price is not known
    """

    def __init__(
        self,
        settings: BudgetSettings | None = None,
        above: SpendingScope | None = None,
        clock: Callable[[], float] = monotonic,
        on_usage: Callable[[Usage], object] | None = None,
    ) -> None:
        settings = settings or BudgetSettings()
        self._settings, self._clock, self._on_usage = settings, clock, on_usage
        kind = ScopeKind.SESSION if above is None else ScopeKind.TASK
        self.session = SpendingScope(kind, settings.session, settings.session, clock(), above, settings.strict)
        self.prompt = self._new_prompt()
        has_max_cost = bool(settings.max_cost or settings.session.max_cost)
        self.needs_cost = has_max_cost or any(scope.limits.max_cost for scope in self.session.chain())
        self.has_told_unpriced = False

    def child(
        self, limits: BudgetLimits | None = None, on_usage: Callable[[Usage], object] | None = None
    ) -> "UsageLedger":
        """The ledger of an agent that works for the prompt that runs now. `limits`: of its whole task."""
        settings = BudgetSettings(session=limits or BudgetLimits(), strict=self._settings.strict)
        child = UsageLedger(settings, self.prompt, self._clock, on_usage)
        child.needs_cost = child.needs_cost or self.needs_cost
        return child

    def begin_prompt(self) -> None:
        """A prompt of a person begins: it has a budget of its own, and what was refused may be asked again."""
        self.session.refused = False
        self.prompt = self._new_prompt()

    def add(self, usage: Usage) -> None:
        """Count one request."""
        for scope in self.prompt.chain():
            scope.totals = scope.totals.plus(usage)
        if self._on_usage is not None:
            self._on_usage(usage)

    def reached(self) -> BudgetReached | None:
        """The first limit that is used up, the narrowest budget first; None: all may go on."""
        scope: SpendingScope | None = self.prompt
        while scope is not None:
            if scope.limits != NO_LIMITS:
                for reached in self._reached(scope):
                    return reached
            scope = scope.above
        return None

    @property
    def must_tell_unpriced(self) -> bool:
        """Whether a limit of cost may not hold, since a price is not known, and nobody was told."""
        if self.has_told_unpriced or not self.needs_cost:
            return False
        return any(scope.limits.max_cost and scope.totals.unpriced for scope in self.prompt.chain())

    def extend(self, reached: BudgetReached) -> None:
        """A person allows as much again, as often as it takes to go on."""
        scope, kind = reached.scope, reached.kind
        if kind is BudgetKind.PRICE:
            scope.strict = False
            return
        if getattr(scope.limits, kind.value) != reached.limit:
            return  # somebody else was asked meanwhile
        step = getattr(scope.initial_limits, kind.value)
        times = int((reached.used - reached.limit) // step) + 1
        scope.limits = replace(scope.limits, **{kind.value: getattr(scope.limits, kind.value) + times * step})

    def _reached(self, scope: SpendingScope) -> Iterator[BudgetReached]:
        limits, totals = scope.limits, scope.totals
        if limits.max_tokens and totals.tokens >= limits.max_tokens:
            yield BudgetReached(scope, BudgetKind.TOKENS, totals.tokens, limits.max_tokens)
        if limits.max_cost:
            if (totals.cost or 0.0) >= limits.max_cost:
                yield BudgetReached(scope, BudgetKind.COST, totals.cost or 0.0, limits.max_cost)
            if scope.strict and totals.unpriced:
                yield BudgetReached(scope, BudgetKind.PRICE, totals.unpriced, 0)
        if limits.max_seconds and (seconds := self._clock() - scope.began) >= limits.max_seconds:
            yield BudgetReached(scope, BudgetKind.SECONDS, seconds, limits.max_seconds)

    def _new_prompt(self) -> SpendingScope:
        settings = self._settings
        limits = BudgetLimits(settings.max_tokens, settings.max_cost, settings.max_seconds)
        return SpendingScope(ScopeKind.PROMPT, limits, limits, self._clock(), self.session, settings.strict)


def format_cost(dollars: float) -> str:
    """With two digits, or as many more as a small sum needs: $1.25, $0.0031."""
    if dollars >= 0.1 or dollars <= 0:
        return f"${dollars:,.2f}"
    return f"${dollars:.2g}" if dollars >= 0.0001 else f"${dollars:.6f}"

"""SVT3: tops that give away the noisy answers that were compared with one noisy threshold.

Given the values, the threshold lies below the least of them, u. So the density of an output is the integral up to u of
the threshold's density times the chances of the bottoms, times the densities of the values. It depends on how many
answers of each kind were bottoms, on u and its kind, and on the other value with its kind: once that lies beyond all
answers its log ratio does not change. So the cells are intervals of u, and squares where a second value is among the
answers; what lies below all answers has one log ratio.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from audits.literature.laws.cells import Cells, gathered
from audits.literature.laws.curve import Curve, Floats
from dpaudit import AdjacentPair
from dpaudit.catalogue import Entry
from dpaudit.catalogue.sparse.lyu import THREE
from dpaudit.losses.comparisons import below, density, outputs
from dpaudit.losses.released import one_threshold_values_loss

Counts = npt.NDArray[np.int64]

NODES = 8  # of a cell
AMONG = {1: 2000, 2: 160}  # cells from the least answer to the greatest, by the tops after which a run halts
BEYOND = {1: 8000, 2: 3000}  # cells above them, which widen as the log ratio levels off
LEVEL, FAR = 6.0, 40.0  # scales above the answers: up to there cells widen; beyond FAR lies e^-40
QUADRATURE = 1e-9  # relative, of the probability of a cell
METHOD = (
    "quadrature over cells of the values: their unions are events with these probabilities, and what the best event "
    "can have more is bounded by the largest ratio in each cell"
)


@dataclass(frozen=True, slots=True)
class Noises:
    """The threshold, and the scales of the noise on it and on the answers."""

    threshold: float
    threshold_scale: float
    query_scale: float


def curves(entry: Entry, pair: AdjacentPair) -> tuple[Curve, Curve]:
    """Both directions, for a halt at the first top or the second."""
    values = entry.values()
    noises = Noises(values["threshold"], *THREE.noises(values["epsilon"], values["c"]))
    forth, back = gathered(released_cells(pair.first, pair.second, values["c"], noises))
    losses = released_losses(pair.first, pair.second, values["c"], noises)
    return forth.curve(losses[0], METHOD, QUADRATURE), back.curve(losses[1], METHOD, QUADRATURE)


def released_losses(first: list[float], second: list[float], most: int, noises: Noises) -> tuple[float, float]:
    """The exact losses of the two directions."""
    p, q = np.asarray(first, float), np.asarray(second, float)
    scales = (noises.threshold, noises.threshold_scale, noises.query_scale)
    return one_threshold_values_loss(p, q, most, *scales), one_threshold_values_loss(q, p, most, *scales)


def released_cells(first: list[float], second: list[float], most: int, noises: Noises) -> Iterator[Cells]:
    """All outputs of a run that halts at its first or second top, in cells."""
    pairs = [(float(p), float(q)) for p, q in zip(first, second, strict=True)]
    known = list(dict.fromkeys(pairs))
    found = outputs([known.index(pair) for pair in pairs], most)
    grid = Grid.over([noises.threshold, *map(float, first), *map(float, second)], most, noises)
    sides = [Side(np.array(answers), grid, noises) for answers in zip(*known, strict=True)]
    moves = [
        sides[0].log_density(kind, grid.edges) - sides[1].log_density(kind, grid.edges) for kind in range(len(known))
    ]
    for tops, bottoms, size in zip(found.tops, found.bottoms, found.size, strict=True):
        reached = [side.reached(bottoms) for side in sides]
        if not tops.any():
            p, q = (np.array([size * each.edges[-1]]) for each in reached)
            yield Cells(p, q, np.log(p / q), np.log(p / q))
        for lowest in map(int, np.flatnonzero(tops)):
            least = [side.least(lowest, each) for side, each in zip(sides, reached, strict=True)]
            ratios = grid.ranges(*(one - other for one, other in zip(least[0].logs, least[1].logs, strict=True)))
            if tops.sum() == 1:
                yield Cells(size * least[0].masses, size * least[1].masses, *ratios)
                continue
            second_kind = int(np.argmax(tops - (np.arange(len(tops)) == lowest)))
            ways = size * (2 if second_kind == lowest else 1)  # of two answers of a kind either is the least
            both = [side.with_second(second_kind, each, ways) for side, each in zip(sides, least, strict=True)]
            yield from _two_values(both[0], both[1], ratios, grid.ranges(moves[second_kind]), grid.among)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Edges of the cells of a value from the least answer up (below it there is one more), with nodes and weights."""

    edges: Floats
    nodes: Floats
    weights: Floats
    within: Floats  # integrates from the left edge to each node
    among: int  # cells that lie among the answers

    @classmethod
    def over(cls, points: list[float], most: int, noises: Noises) -> Grid:
        """The grid for these answers and this threshold."""
        knots = sorted(set(points))
        fine = AMONG[most] / max(knots[-1] - knots[0], 1.0)
        pieces = [np.linspace(a, b, 1 + int(np.ceil(fine * (b - a)))) for a, b in pairwise(knots)]
        low = np.unique(np.concatenate([[knots[0]], *pieces]))
        scale = max(noises.threshold_scale, noises.query_scale)
        widening = -np.log1p(-np.linspace(0.0, -np.expm1(-LEVEL), BEYOND[most]))
        steps = np.concatenate([widening[1:], np.arange(LEVEL, FAR, 0.125)[1:], [FAR]])
        edges = np.concatenate([low, knots[-1] + scale * steps])
        roots, weights = np.polynomial.legendre.leggauss(NODES)
        basis = np.linalg.inv(np.polynomial.legendre.legvander(roots, NODES - 1))
        integrals = np.polynomial.legendre.legint(np.eye(NODES), lbnd=-1, axis=0)
        within = np.polynomial.legendre.legval(roots, integrals).T @ basis
        half = np.diff(edges)[:, None] / 2.0
        nodes = edges[:-1, None] + half * (roots + 1.0)
        return cls(edges, nodes, half * weights, np.ascontiguousarray(within), len(low) - 1)

    def up_to(self, start: float, values: Floats) -> tuple[Floats, Floats]:
        """The integral of a function, given at the nodes, from the first edge on: at the edges and at the nodes."""
        edges = start + np.concatenate([[0.0], np.cumsum((values * self.weights).sum(axis=1))])
        half = np.diff(self.edges)[:, None] / 2.0
        return edges, edges[:-1, None] + half * (values @ self.within.T)

    def ranges(self, at_edges: Floats, at_nodes: Floats | None = None) -> tuple[Floats, Floats]:
        """The least and the largest of a log ratio in each cell; the first is the one below all answers."""
        inside = np.stack([at_edges[:-1], at_edges[1:]], axis=1)
        if at_nodes is not None:
            inside = np.concatenate([inside, at_nodes], axis=1)
        return np.append(at_edges[0], inside.min(axis=1)), np.append(at_edges[0], inside.max(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """The chance that some answers are bottoms and the threshold lies below a value: at the edges, at the nodes."""

    edges: Floats
    nodes: Floats
    rate: float  # below all answers it grows like e^(rate value)


@dataclass(frozen=True, slots=True, eq=False)
class Least:
    """The least value given away: its log density, its part of each node, and the probability of each cell."""

    logs: tuple[Floats, Floats]  # at the edges, at the nodes
    parts: Floats
    masses: Floats  # the cell below all answers first
    faster: float  # what that cell holds of a function that falls from 1 at its edge like a second answer's tail


@dataclass(frozen=True, eq=False)
class Side:
    """One dataset: its answers, by kind."""

    answers: Floats
    grid: Grid
    noises: Noises

    def log_density(self, kind: int, values: Floats) -> Floats:
        """The log density of the noisy answer of a kind, without its constant."""
        return np.asarray(-np.abs(values - self.answers[kind]) / self.noises.query_scale)

    @cached_property
    def bottoms(self) -> tuple[Floats, Floats]:
        """The chance of a bottom given the threshold, by kind: at the nodes and at the first edge."""
        scale = self.noises.query_scale
        nodes = [below(self.grid.nodes - answer, scale) for answer in self.answers]
        return np.stack(nodes), np.asarray(below(self.grid.edges[0] - self.answers, scale))

    def reached(self, bottoms: Counts) -> Reached:
        """For so many bottoms of each kind."""
        noises, grid = self.noises, self.grid
        at_nodes, at_first = self.bottoms
        values = density(grid.nodes - noises.threshold, noises.threshold_scale)
        for kind in np.flatnonzero(bottoms):
            values = values * at_nodes[kind] ** bottoms[kind]
        start = density(grid.edges[:1] - noises.threshold, noises.threshold_scale)[0] * np.prod(at_first**bottoms)
        rate = 1.0 / noises.threshold_scale + float(bottoms.sum()) / noises.query_scale
        return Reached(*grid.up_to(float(start) / rate, values), rate)

    def least(self, kind: int, reached: Reached) -> Least:
        """The least value is that of an answer of this kind."""
        grid, scale = self.grid, self.noises.query_scale
        parts = grid.weights * reached.nodes * density(grid.nodes - self.answers[kind], scale)
        at_first = float(reached.edges[0] * density(grid.edges[:1] - self.answers[kind], scale)[0])
        below_all, faster = (at_first / (reached.rate + more / scale) for more in (1.0, 2.0))
        logs = (
            np.log(reached.edges) + self.log_density(kind, grid.edges),
            np.log(reached.nodes) + self.log_density(kind, grid.nodes),
        )
        return Least(logs, parts, np.append(below_all, parts.sum(axis=1)), faster)

    def with_second(self, kind: int, least: Least, ways: float) -> tuple[Floats, Floats]:
        """The probabilities of the least value and a greater one of this kind.

        First both in one cell, or both above the answers; then the least below or among them (rows) and the other
        in each cell among them or above all (columns), of which the upper triangle counts.
        """
        grid, scale, answer = self.grid, self.noises.query_scale, self.answers[kind]
        among = grid.among
        at = below(grid.edges[: among + 1] - answer, scale)
        cell = (least.parts[:among] * (at[1:, None] - below(grid.nodes[:among] - answer, scale))).sum(axis=1)
        above = (least.parts[among:] * below(answer - grid.nodes[among:], scale)).sum(axis=1)
        near = np.concatenate([at[:1] * (least.masses[0] - least.faster), cell, above])
        second = np.append(np.diff(at), below(answer - grid.edges[among], scale))
        return ways * near, ways * np.outer(least.masses[: among + 1], second)


def _two_values(
    p: tuple[Floats, Floats],
    q: tuple[Floats, Floats],
    ratios: tuple[Floats, Floats],
    moves: tuple[Floats, Floats],
    among: int,
) -> Iterator[Cells]:
    low, high = (ratio + move for ratio, move in zip(ratios, moves, strict=True))
    yield Cells(p[0], q[0], low, high)
    kept = np.triu(np.ones(p[1].shape, np.bool_))
    low, high = (ratio[: among + 1, None] + move[1 : among + 2] for ratio, move in zip(ratios, moves, strict=True))
    yield Cells(p[1][kept], q[1][kept], low[kept], high[kept])

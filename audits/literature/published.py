"""What was published of these mechanisms: the bounds that DP-Sniper and StatDP reported, with times and executions.

Numbers as the result logs of DP-Sniper's evaluation give them (Bichsel, Steffen, Bogunovic & Vechev, S&P 2021). Each
bound is ln(L / U) on 200 million fresh runs a side, L and U one-sided Clopper-Pearson limits at 0.05 each: confidence
0.90. "StatDP" is StatDP (Ding, Wang, Wang, Zhang & Kifer, CCS 2018) as that evaluation extended it to search for the
largest epsilon that it refutes.
"""

from __future__ import annotations

from dataclasses import dataclass

VERIFYING = 400_000_000  # executions on the final event, 200 million a side: all tools alike
SEARCHING = 53_500_000  # DP-Sniper's, of each pair in each order: 5 samples of 10.7 million
STATDP_EVENT = 200_000  # StatDP's, of each pair in each order, for each epsilon that it tries
STATDP_TEST = 1_000_000  # and those of its test


@dataclass(frozen=True, slots=True)
class Reported:
    """A published lower bound at confidence 0.90, and the seconds it took, on hardware that was not stated.

    The seconds are those of search and verification together for DP-Sniper, and of the search alone for StatDP.
    """

    epsilon: float
    seconds: int | None = None

    def __str__(self) -> str:
        return f"{self.epsilon:g}"


@dataclass(frozen=True, slots=True)
class Published:
    """What was reported of one mechanism: by DP-Sniper with either classifier, by StatDP in two runs.

    `pairs` is how many pairs of datasets their search took, each in both orders. `remark` says in a sentence what
    stands in the way of a comparison, and `same` whether StatDP's column is of this mechanism at all.
    """

    name: str
    pairs: int
    logistic: Reported | None = None
    network: Reported | None = None
    statdp: tuple[Reported, ...] = ()
    remark: str = ""
    same: bool = True

    @property
    def best(self) -> Reported | None:
        """DP-Sniper's better bound; None where it has none."""
        reported = [each for each in (self.logistic, self.network) if each is not None]
        return max(reported, key=lambda each: each.epsilon, default=None)

    @property
    def executions(self) -> int:
        """DP-Sniper's executions with one classifier, by its documented sample sizes.

        >>> of("Laplace").executions, of("SVT1").executions
        (614000000, 1256000000)
        """
        return 2 * self.pairs * SEARCHING + VERIFYING

    @property
    def statdp_executions(self) -> int:
        """StatDP's executions for each epsilon that it tries; `VERIFYING` more at the end. How many is not published.

        >>> of("SVT1").statdp_executions
        4200000
        """
        return 2 * self.pairs * STATDP_EVENT + STATDP_TEST


def _row(
    name: str,
    pairs: int,
    logistic: tuple[float, int] | None,
    network: tuple[float, int] | None,
    statdp: tuple[float, float, int] | None = None,
    remark: str = "",
    same: bool = True,
) -> Published:
    runs = () if statdp is None else tuple(Reported(epsilon, statdp[2]) for epsilon in statdp[:2])
    return Published(
        name,
        pairs,
        None if logistic is None else Reported(*logistic),
        None if network is None else Reported(*network),
        runs,
        remark,
        same,
    )


ONE, ALL = 2, 8  # pairs where one answer differs, where all do: the patterns of StatDP
FIRST_ALONE = "StatDP's program releases the first answer alone."

PUBLISHED = (  # name, pairs, logistic regression, neural network, StatDP: bounds and seconds
    _row("Laplace", ONE, (0.0968, 21), (0.0976, 217), (0.0998, 0.0996, 46)),
    _row("TruncGeo", ONE, (0.1156, 20), (0.1155, 162), (0.1159, 0.1169, 352)),
    _row("NoisyHist1", ONE, (0.0978, 38), (0.0977, 211), (0.0828, 0.0994, 505), FIRST_ALONE),
    _row("NoisyHist2", ONE, (4.602, 41), (4.602, 254), (9.717, 10.002, 816), FIRST_ALONE),
    _row("NoisyMax1", ALL, (0.0923, 62), (0.0925, 492), (0.0920, 0.0921, 60)),
    _row("NoisyMax2", ALL, (0.0975, 58), (0.0979, 423), (0.0996, 0.0997, 60)),
    _row("NoisyMax3", ALL, (0.2478, 62), (0.2488, 437), (0.1991, 0.1961, 131)),
    _row("NoisyMax4", ALL, (0.3463, 63), (0.3534, 451), (0.1960, 0.1988, 131)),
    _row("SVT1", ALL, (0.0858, 126), (0.0858, 966), (0.0298, 0.0298, 348)),
    _row("SVT2", ALL, (0.0859, 160), (0.0852, 825), (0.0316, 0.0407, 403)),
    _row("SVT3", ALL, (0.1716, 160), (0.1822, 880), (0.0231, 0.1793, 5839)),
    _row("SVT4", ALL, (0.1687, 131), (0.1696, 815), (0.1709, 0.1719, 555)),
    _row(
        "SVT5",
        ALL,
        (1.761, 59),
        (1.761, 527),
        (14.31, 14.31, 355),
        "StatDP's column is iSVT1 run at epsilon 0.05, threshold noise of scale 40; here it is 20: not one mechanism.",
        same=False,
    ),
    _row("SVT6", ALL, (0.2720, 96), (0.2698, 584), (0.3220, 0.3200, 760)),
    _row("NumericalSVT", ALL, (0.0343, 152), (0.0345, 686), None, "No result of StatDP was published."),
    _row(
        "PrefixSum",
        ALL,
        (0.5040, 97),
        (0.5774, 984),
        (0.3516, 0.3446, 3376),
        "Its claim is that for one answer that moves; here all ten may.",
    ),
    _row("OneTimeRAPPOR", ONE, (0.5978, 89), (0.5999, 408), (0.4706, 0.0602, 987)),
    _row("RAPPOR", ONE, (0.2930, 145), (0.3008, 529), (0.2416, 0.0243, 1175)),
    _row("LaplaceParallel", ONE, (0.0350, 104), (0.0299, 341), (0.0126, 0.0135, 4722)),
    _row("SVT34Parallel", ALL, (0.2610, 364), (0.2616, 1118), (0.1371, 0.1963, 27400)),
    _row(
        "Snapping",
        ONE,
        None,
        (0.0979, 2901),
        None,
        "Published as the control of an experiment on floating-point numbers.",
    ),
    _row("NoisySum", ONE, None, None, None, "A mechanism of DP-Finder (CCS 2018), for which no figures are at hand."),
)


def of(name: str) -> Published:
    """What was published of the mechanism of this name; raises KeyError where it is not of the set.

    >>> str(of("SVT6").best), str(of("NoisySum").best)
    ('0.272', 'None')
    """
    return {each.name: each for each in PUBLISHED}[name]

"""What the attacks of the catalogue achieve, in words, and the names of the notes that speak of them."""

from __future__ import annotations

from dpaudit.catalogue.attacks import achieves, allowed, find

HAGHTALAB = "Haghtalab 2020, notes 000"
SARKAR, BASSI, CHEEMA = "Sarkar, notes 003", "Bassi 2019, notes 001", "Cheema & Huszár, notes 004"
SEED, RUNS = 1, 20_000


def measured(name: str) -> str:
    """What an attack achieves on the release with DP, against what that allows, in words."""
    attack = find(name)
    claim = attack.private.claim()
    epsilon, delta = claim.epsilon, claim.delta  # type: ignore[attr-defined]
    left = achieves(attack, attack.private, min(RUNS, attack.runs), SEED).advantage
    return (
        f"against the release with noise for epsilon = {epsilon:g} the attack has an advantage of {left:.2f}, where "
        f"{allowed(epsilon, delta):.2f} is allowed"
    )


def certain(name: str) -> bool:
    """Whether an attack is always right on the release without DP."""
    attack = find(name)
    return achieves(attack, attack.without, 1_000, SEED).advantage == 1.0

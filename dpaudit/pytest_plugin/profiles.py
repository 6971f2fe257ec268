"""How much a test session spends on an audit: profiles by name, and what the project and the command line change."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIDENCE = 1.0 - 1e-6  # of each audit: a suite of a thousand then refutes falsely once in a thousand sessions


@dataclass(frozen=True, slots=True)
class Profile:
    """Runs and confidence of an audit that says nothing of its own, and whether each session has a new seed."""

    name: str
    runs: int
    confidence: float = CONFIDENCE
    fresh_seed: bool = False


PROFILES = {
    profile.name: profile
    for profile in (Profile("dev", 20_000), Profile("ci", 200_000), Profile("nightly", 5_000_000, fresh_seed=True))
}
DEFAULT = "dev"


@dataclass(frozen=True, slots=True)
class Spending:
    """What the audits of a session are given, where their test does not say: the outcome of all settings.

    `runs` and `seed` go before what a test says; they are those of the command line, None where it names none.
    `usual` are the values that come after what a test says.
    """

    profile: Profile
    usual: dict[str, Any]
    runs: int | None = None
    seed: int | None = None

    @property
    def line(self) -> str:
        """The plan as the header of a session prints it."""
        runs = self.usual["runs"] if self.runs is None else self.runs
        seed = self.usual["seed"] if self.seed is None else self.seed
        return f"profile {self.profile.name}, {runs:,} runs an audit, seed {seed}"

    def settle(self, said: dict[str, Any]) -> dict[str, Any]:
        """The keywords of an audit: the command line's, then what its test says, then the usual ones.

        >>> Spending(PROFILES["dev"], {"runs": 20_000, "seed": 0}, seed=7).settle({"runs": 500, "seed": 1})
        {'runs': 500, 'seed': 7}
        """
        settled = {**self.usual, **({} if said.get("max_time_s") is None else {"runs": None}), **said}
        if self.runs is not None:
            settled.update(runs=self.runs, max_time_s=None)
        if self.seed is not None:
            settled["seed"] = self.seed
        return settled


def plan(
    *, profile: str | None, runs: int | None, seed: int | None, settings: dict[str, Any], fresh: int | None = None
) -> Spending:
    """The plan of a session: the command line, then [tool.dpaudit], then the default profile.

    A profile that the command line names goes before the settings. `fresh` is the new seed that a session which
    shares its tests with others was given; None: it is drawn here, where the profile wants one.

    >>> plan(profile="ci", runs=None, seed=None, settings={"runs": 50_000}).line
    'profile ci, 200,000 runs an audit, seed 0'
    """
    chosen = PROFILES[DEFAULT if profile is None else profile]
    usual: dict[str, Any] = {"runs": chosen.runs, "confidence": chosen.confidence, "seed": 0}
    if chosen.fresh_seed:
        import secrets

        usual["seed"] = secrets.randbits(32) if fresh is None else fresh
    if profile is None:
        usual.update({key: value for key, value in settings.items() if key in usual})
    return Spending(chosen, usual, runs, seed)


def settings_of(root: Path) -> dict[str, Any]:
    """The table [tool.dpaudit] of the project, as far as a session needs it; empty where it is wrong: each audit tells.

    Its confidence is that of a whole suite of `dpaudit run`, which would be far too little for each of many tests.
    """
    from dpaudit.errors import InvalidSpec
    from dpaudit.spec_file.settings import read_settings

    try:
        held = read_settings(root)
    except InvalidSpec:
        return {}
    runs = None if held.runs is None else int(held.runs)
    found = {"runs": runs, "seed": held.seed, "accepted": held.accepted}
    return {key: value for key, value in found.items() if value is not None}

"""Features of the grid that a number lies on, as far as people can see it: what is left of it, how it is written.

Both look at the double before it is rounded, never finer than a millionth of a modulus or `DECIMALS` decimals, and only
where that is far more than the spacing of doubles: the last bits of doubles are a finding of another kind.
"""

from dataclasses import dataclass

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.events.features.column import OfPath, single, spell
from dpaudit.outputs.canonical import Column, Outputs

FINE = 1e6  # parts of a modulus that are told apart
FARTHEST = 1e8  # moduli from 0: there a part is ninety times the spacing of doubles
UNTOLD = -1.0  # the residue of what lies farther out, or is infinite
DECIMALS = 8
MOST_DIGITS = 1e12  # of a number written with some decimals: beyond, they are not told from the spacing of doubles
SPACINGS = 4.0  # of doubles: what a few sums may be off


@dataclass(frozen=True, slots=True)
class Residue(OfPath, kind="residue"):
    """A number modulo another, in [0, modulus), told to a millionth of it; -1 where it is too far from 0 to tell."""

    modulus: float

    def column(self, outputs: Outputs) -> Column:
        column = outputs.column(self.path)
        values: Reals = column.values.astype(np.float64)
        inverse = round(1.0 / self.modulus)  # so that moduli below 1 are the decimals that they are written as
        with np.errstate(invalid="ignore", over="ignore"):
            turns = values * inverse if self.modulus < 1.0 else values / self.modulus
            part = np.rint((turns - np.floor(turns)) * FINE)
            part[part == FINE] = 0.0
            # whole numbers need no rounding, however far out
            whole = (values == np.rint(values)) & (np.abs(values) < 2.0**53) & (self.modulus == round(self.modulus))
            exact = np.mod(np.where(whole, values, 0.0), self.modulus)
            found = np.where(whole, exact, np.where(np.abs(turns) <= FARTHEST, part / FINE * self.modulus, UNTOLD))
        found[np.isnan(values)] = np.nan
        return Column(single(found), column.codes)

    def __str__(self) -> str:
        return f"{spell(self.path)} modulo {self.modulus:g}"


@dataclass(frozen=True, slots=True)
class Decimals(OfPath, kind="decimals"):
    """How many decimals a number is written with, to within a few spacings of doubles; 9 where more than eight."""

    def column(self, outputs: Outputs) -> Column:
        column = outputs.column(self.path)
        values: Reals = column.values.astype(np.float64)
        found = np.full(len(values), DECIMALS + 1.0)
        with np.errstate(invalid="ignore", over="ignore"):
            near = SPACINGS * np.spacing(np.abs(values))
            for places in range(DECIMALS, -1, -1):
                digits = np.rint(values * 10.0**places)
                found[(np.abs(digits) < MOST_DIGITS) & (np.abs(digits / 10.0**places - values) <= near)] = places
        found[np.isnan(values)] = np.nan
        return Column(single(found), column.codes)

    def __str__(self) -> str:
        return f"number of decimals of {spell(self.path)}"

"""Events of the versions before 0.6, counted plainly outside their environments."""


def above_two(output: float) -> bool:
    """The mean of values that are said to lie in [0, 1] comes out above 2."""
    return output > 2.0


def slope_above_two(output: float) -> bool:
    """The slope is above 2."""
    return output > 2.0


def steep(output: float) -> bool:
    """The slope is above 20 or below -20."""
    return abs(output) > 20.0

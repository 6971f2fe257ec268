"""Whether the experiment was sound: named checks that runs are independent, and runs in fresh processes."""

from dpaudit.auditing.health.checks import NOTHING, SeenBy, Twins, judge

__all__ = ["NOTHING", "SeenBy", "Twins", "judge"]

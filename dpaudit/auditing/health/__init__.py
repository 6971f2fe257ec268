"""Whether the experiment was sound: named checks that runs are independent, and runs in fresh processes."""

from dpaudit.auditing.health.checks import CHECKS, CURES, LEVEL, NOTHING, Check, Health, Seen, Twins, judge

__all__ = ["CHECKS", "CURES", "LEVEL", "NOTHING", "Check", "Health", "Seen", "Twins", "judge"]

"""Templates of what a door says that is no account of a finding: plans, calibrations, test sessions, what went wrong.

They are filled by `format`.
"""

SWEEP = "A sweep of audits of differential privacy claims"
CUT_OFF = "; the same command goes on from there"
RECHECKED = "{headline}\nthe stored counts give this verdict, bound and p-value"
WHOLE = "dpaudit report RESULT.json --format txt, of the files that --report DIR keeps"
FOLDER = "The folder that dpaudit was called in."

# --- what goes wrong beside a verdict ---

UNWRITTEN_RESULT = "the result could not be written: {why}"
UNWRITTEN_REPORT = "the report could not be written: {why}"
NO_REPORT = "a {finding} has no report as {kind}; findings have .html, .md and .txt, and .json where they are stored"
UNMADE_REPORT = "the report could not be made: {why}"
UNREAD_RESULT = "its result cannot be read back: {why}"
WRITTEN_OVER = "its result, {verdict}, was written over by the same test in another process"
NO_LONGER_ASKED = "audit {name!r} had begun and can no longer be asked"
DRIVERS = "its runs are those of {drivers} processes, one after the other"

# --- what a spec would spend, and could see ---

FITTED = "as many as fit into {limit:g} s{most}, chosen by a probe when it runs"
STAGES = {False: ("to search", "to certify"), True: ("to learn what to bet on", "to bet on and certify")}
SHARDS = "  shards      of {size:,} runs, {many:,} of them certifying"
STOPPING = "  stopping    anytime: as soon as bets reach a wealth of {wealth:,.0f}, {part}"
CONTROLS = "  controls    {repeats} repeats of each size in each place: {more:,} more runs at most"
CATCHES = "  catches     {what}:"
CEILING = "  ceiling     {name} {most}, with every hit on one side"
PUT_OFF = "{name}: certifying runs are put off"
FROZEN = """frozen: {plan}, {runs:,} certifying runs in {many}
count each part, wherever:  dpaudit shard {plan} --part 1/{parts} --out counts
and then:                   dpaudit merge {plan} counts"""
FREEZE_AGAIN = " since it was frozen; restore it, or freeze a new plan"
NOT_FROZEN = "an audit is gone" + FREEZE_AGAIN
NOT_TOLD = ", so nobody can tell whether a part was counted of it"
COUNTED = "{path}: {runs:,} runs"
COUNTED_ALREADY = "{path}: there already, and whole"
COUNTED_AGAIN = "rechecked: {many} of {of:,} counted again, all the same"
OTHER_COUNTS = "counted again it has other counts: it was edited, or counted by other code or on other hardware"
OWN_CLAIM = "; the claim of {asked} is left to the mechanism, which `dpaudit plan` asks"

# --- calibrations, the catalogue, proofs ---

CALIBRATED = "{audits:,} whole audits a line, {runs:,} runs each, at confidence {confidence}, seed {seed}"
AS_STATED = "every rate is as stated, as far as this many audits can tell"
KEEPING = "{keeping} keep their claim, {broken} break it; `dpaudit catalogue NAME` describes one"
ADVANTAGE = "without DP  {name}: advantage {rate:.3f} over {runs:,} runs in each world"
KEPT = {True: "the claim holds", False: "the cost is above it for some parameters of the scope"}

# --- the end of a test session ---

FALSE_ALARM = "chance of a false alarm: at most {chance} for all of them together; {plan}"
IN_PART = "{audits} did not look at outputs whole; --dpaudit-report DIR says how far"
AGAIN = "{test}: {what}, and its test was run again: what was found stands"
SILENT = "{test}: {what}, but its test did not fail"

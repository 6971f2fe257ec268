"""Certifying runs by hand: a frozen plan of which anyone counts a part, with no driver and no network between them.

A plan is the ledger of a run whose certifying calls are put off, and a part a copy of it with shards of these, counted
wherever: shard i is of part i modulo their number. A merge puts the shards of all parts into a copy of the plan, and
the run is taken up there as one that was interrupted: so its result, health checks included, is that of one machine.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.base.files import read_bytes, write_text, writing
from dpaudit.base.quoting import clean
from dpaudit.base.strict import JsonObject
from dpaudit.errors import DpAuditError, InvalidSpec, NotAttested, at
from dpaudit.execution.journal import ELSEWHERE, FROZEN, FrozenCall, StoredShard
from dpaudit.ledger.results import Ledger
from dpaudit.ledger.runs import LedgerJournal
from dpaudit.processes.frames import UnreadableShard, decoded
from dpaudit.results.attesting import STATEMENT, SUFFIX, opened, public_key, signed
from dpaudit.running.contents import digest_of
from dpaudit.running.streams import Shard

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner, SSlibKey

PREDICATE = "urn:uuid:60d5a809-d9f4-4bd4-894a-b0284cd610be#dpaudit-part/v1"
BY_HAND = "by hand"  # of a run's options: what reads its audits again, and how many parts it has

Place = tuple[int, int, Shard]  # the number of an audit, that of one of its calls, and a shard of this


@dataclass(frozen=True, slots=True)
class FrozenPlan:
    """The run in the ledger of a plan: its audits by number, with those of their calls that are put off.

    `asked` are the options that read these audits again, in `parts` parts.
    """

    ledger: Ledger
    run: str
    parts: int
    asked: JsonObject
    calls: dict[int, list[FrozenCall]]

    @classmethod
    def of(cls, ledger: Ledger) -> "FrozenPlan":
        """The plan in a ledger. Raises `InvalidSpec` where there is none that this version knows."""
        for row in ledger.rows("SELECT id, suite FROM runs WHERE finished IS NULL"):
            with suppress(AttributeError, KeyError, TypeError):
                options = json.loads(row["suite"])["asked"]["options"][BY_HAND]
                numbers = ledger.rows("SELECT number FROM begun WHERE run = ?", (row["id"],))
                notes = {each[0]: LedgerJournal(ledger, row["id"], each[0], driver=1).notes() for each in numbers}
                frozen = {number: found[FROZEN] for number, found in notes.items() if FROZEN in found}
                calls = {number: [FrozenCall(**each) for each in found] for number, found in frozen.items()}
                return cls(ledger, row["id"], options["parts"], options, calls)
        raise InvalidSpec("no frozen plan, or of another version; `dpaudit plan SPEC --freeze PLAN` writes one")

    def journal(self, audit: int) -> LedgerJournal:
        """What the ledger holds of an audit."""
        return LedgerJournal(self.ledger, self.run, audit, driver=1)

    def part_of(self, shard: Shard) -> int:
        """The part of a shard; parts are numbered from 1 on."""
        return shard.index % self.parts + 1

    @property
    def wanted(self) -> set[Place]:
        """All shards of its frozen calls."""
        every = ((audit, each) for audit, calls in self.calls.items() for each in calls)
        return {(audit, call.number, shard) for audit, call in every for shard in call.shards}

    def counted(self) -> dict[Place, StoredShard]:
        """The shards of its frozen calls that it holds, by audit and call.

        Raises `LedgerError` where one is not what was stored, `InvalidSpec` where it cannot be of this call.
        """
        found = {}
        for audit, calls in self.calls.items():
            for call in calls:
                wanted = set(call.shards)
                for each in self.journal(audit).fetch(call.number):
                    if each.kind != "piece":  # of a shard that is being counted
                        self._check(each, call, wanted, f"audit {audit}, shard {each.shard.index}")
                        found[audit, call.number, each.shard] = each
        return found

    def _check(self, stored: StoredShard, call: FrozenCall, wanted: set[Shard], place: str) -> None:
        if stored.shard not in wanted or stored.question != call.question:
            raise InvalidSpec(f"{place} answers another question than the plan asks")
        try:
            counts, watch = decoded("counts", stored.content).result, call.watch
        except UnreadableShard:
            raise InvalidSpec(f"{place} has no counts of these events") from None
        if counts.shape != (watch.integers,) or counts[:2].sum() != stored.shard.runs:
            raise InvalidSpec(f"{place} has no counts of these events in {stored.shard.runs:,} runs")
        hits = np.concatenate([watch.hits(counts, which).sum(axis=-1) for which in range(len(watch.sizes))])
        if hits.min() < 0 or (hits.reshape(-1, 2) > counts[:2]).any():
            raise InvalidSpec(f"{place} has more hits than runs")


def name_of(part: int, parts: int) -> str:
    """The file of a part.

    >>> name_of(7, 100)
    'part-007-of-100.sqlite'
    """
    return f"part-{part:0{len(str(parts))}}-of-{parts}.sqlite"


def begun(plan: Path, path: Path) -> None:
    """A part that nothing is counted of: the plan without the shards of search, by which its events were found."""
    raw = path.with_name(f".{path.name}.begun")
    shutil.copyfile(plan, raw)
    with Ledger(raw) as ledger:
        with ledger.transaction() as connection:
            connection.execute('DELETE FROM shards WHERE "call" >= 0')
        ledger.give_back()
        ledger.in_one_file()
    raw.replace(path)


def moved(ledger: Ledger, sources: Iterable[str]) -> None:
    """The one run of a ledger is of these specs, wherever they were when it began."""
    with ledger.transaction() as connection:
        connection.execute("UPDATE runs SET suite_hash = ?", (digest_of(sorted(sources)),))


def merge(plan: FrozenPlan, parts: Iterable[Path], key: str | None) -> None:
    """Puts the shards of all parts of a plan into its ledger, each once, signed by the holder of a public key, if any.

    Raises `InvalidSpec` naming the part that is missing, doubled, damaged or of another plan: without any one of them
    there is no bound, as who leaves some out may choose them by their counts. Raises `NotAttested` for a part that is
    not as it was signed.
    """
    seen: dict[Place, Path] = {}
    elsewhere: dict[int, JsonObject] = {}
    by = None if key is None else public_key(key)
    for path in sorted(parts):
        with at(clean(path, 200)), TemporaryDirectory() as folder:
            file = Path(folder) / path.name
            with writing("", file):
                shutil.copyfile(path, file)  # what is read is what was signed, whatever lies beside it
            if by is not None:
                _check_signed(path, file, by)
            with Ledger(file, read_only=True) as ledger:
                part = FrozenPlan.of(ledger)
                if (part.run, part.asked, part.calls) != (plan.run, plan.asked, plan.calls):
                    raise InvalidSpec("it is a part of another plan; count it for this one")
                counted = part.counted()
                for place in counted.keys() & seen.keys():
                    also = clean(seen[place], 200)
                    raise InvalidSpec(f"part {plan.part_of(place[2])} is in {also} too; give each part once")
                for audit in plan.calls:
                    plan.journal(audit).keep([stored for at_, stored in counted.items() if at_[0] == audit])
                    elsewhere.setdefault(audit, {}).update(part.journal(audit).notes().get(ELSEWHERE, {}))
            seen |= dict.fromkeys(counted, path)
    if missing := plan.wanted - seen.keys():
        lost = sorted({plan.part_of(shard) for _, _, shard in missing})
        names = ", ".join(map(str, lost[:5])) + ", ..." * (len(lost) > 5)
        whole = "is not there, or not whole" if len(lost) == 1 else "are not there, or not whole"
        raise InvalidSpec(f"part{'s' * (len(lost) > 1)} {names} of {plan.parts} {whole}: no bound without all of them")
    for audit, who in elsewhere.items():
        plan.journal(audit).note(ELSEWHERE, who)


def sign(path: Path, by: "CryptoSigner") -> None:
    """Writes the signature of a part beside it."""
    write_text(Path(f"{path}{SUFFIX}"), signed(_statement(path, path.name), by) + "\n")


def _check_signed(path: Path, file: Path, by: "SSlibKey") -> None:
    try:
        said = opened(read_bytes(f"{path}{SUFFIX}", 1 << 20).decode("ascii", "replace"), by)
    except DpAuditError as error:
        raise NotAttested(f"it is not signed so ({error}); count it with --key") from None
    if said != _statement(file, path.name):
        raise NotAttested("what was signed is another part, or had other counts")


def _statement(file: Path, name: str) -> JsonObject:
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    subject = {"name": name, "digest": {"sha256": digest}}
    return {"_type": STATEMENT, "subject": [subject], "predicateType": PREDICATE, "predicate": {}}

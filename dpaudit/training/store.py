"""Trainings that are done, each in a file of its own: so that an audit goes on where it was stopped, bit for bit."""

import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.base.files import NoSuchFile, read_bytes, write_bytes
from dpaudit.errors import InvalidSpec
from dpaudit.running.program import changed, unknown
from dpaudit.training.coins import drawn
from dpaudit.training.plan import TrainingPlan

LARGEST = 2**32  # bytes of a file
CURE = "delete that file to train again, or give another folder"


@dataclass(frozen=True, slots=True)
class KeptTrainings:
    """The folder of an audit's trainings; each file repeats the question's `digest` and the `parts` of train."""

    folder: Path
    digest: str
    plan: TrainingPlan
    parts: Mapping[str, str]

    @classmethod
    def into(
        cls, folder: str | os.PathLike[str], digest: str, plan: TrainingPlan, parts: Mapping[str, str], *, resume: bool
    ) -> "KeptTrainings":
        """The folder, made where it is missing. Raises `InvalidSpec` where it holds trainings that are not wanted."""
        home = Path(folder)
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidSpec(f"folder {home} cannot be made ({error.strerror}); name another") from None
        if not resume and any(home.glob("training-*.npz")):
            raise InvalidSpec(f"{home} holds trainings already: go on with resume (--resume), or name another folder")
        return cls(home, digest, plan, parts)

    def path(self, call: int) -> Path:
        """Where a call's scores are kept."""
        return self.folder / f"training-{call + 1:06}.npz"

    def keep(self, call: int, scores: Reals) -> None:
        """Stores the scores and the coins of a call, whole or not at all."""
        content = io.BytesIO()
        np.savez(
            content,
            scores=scores,
            included=drawn(self.plan, call)[0],
            question=np.array(self.digest),
            made=json.dumps(dict(self.parts)),
        )
        try:
            write_bytes(self.path(call), content.getvalue())
        except OSError as error:
            raise InvalidSpec(f"{self.path(call)} cannot be written ({error.strerror}); name another folder") from None

    def scores(self, call: int) -> Reals | None:
        """The scores of a call that was kept; None where there are none. Raises `InvalidSpec` for another's file."""
        path = self.path(call)
        try:
            with np.load(io.BytesIO(read_bytes(path, LARGEST)), allow_pickle=False) as archive:
                if any(each.compress_type for each in archive.zip.infolist()):  # which may unpack to anything
                    raise InvalidSpec("packed, as no training is kept")
                question, coins = str(archive["question"]), archive["included"]
                parts = dict[str, str](json.loads(str(archive["made"])) if "made" in archive else {})
                scores: Reals = archive["scores"]
        except NoSuchFile:
            return None
        except InvalidSpec as error:
            raise InvalidSpec(f"{path}: {error}; {CURE}") from None
        except Exception:  # zipfile and numpy raise many kinds for bytes that are not theirs
            raise InvalidSpec(f"{path}: damaged, or no training of ours; {CURE}") from None
        if parts and (differences := changed(parts, self.parts) + unknown(self.parts)):
            raise InvalidSpec(f"{path}: {'; '.join(differences[:3])}; to train anew, give another folder")
        if question != self.digest or not parts:
            raise InvalidSpec(
                f"{path}: of another question (claim, canaries, trainings, seed, steps, confidence or train differ); "
                "ask as before, or give another folder"
            )
        rows = scores.shape[0] if scores.ndim == 2 else 0
        fits = scores.dtype == np.float64 and rows > 0 and scores.shape[1] == self.plan.canaries
        if not fits or not np.isfinite(scores).all() or not np.array_equal(coins, drawn(self.plan, call)[0]):
            raise InvalidSpec(f"{path}: its scores or coins are not those of this training; {CURE}")
        return scores

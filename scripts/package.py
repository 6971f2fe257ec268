"""Tries what `make package` has built, in the environment that the wheel alone was installed in.

Sdist and wheel hold the licence and every file of the package; what is installed has its commands, and audits.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
SPEC = """
schema = "dpaudit.audit/1"

[[audit]]
name = "noisy count, half the noise"
mechanism = "dpaudit.catalogue.additive:laplace.half_noise"
claim = { epsilon = 1.0 }
pair = { first = 10, second = 9 }
expect = "refuted"
runs = 20_000
"""


def missing(folder: Path, files: set[str]) -> list[str]:
    """What sdist and wheel leave out of the licence and of these files, named from the root of the repository."""
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    with tarfile.open(sdist) as archive:
        in_sdist = {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    licensed = any(name.endswith(".dist-info/licenses/LICENSE") for name in in_wheel)
    lost = [f"{sdist.name}: {name}" for name in sorted({"LICENSE", *files} - in_sdist)]
    return lost + [f"{wheel.name}: {name}" for name in sorted(files - in_wheel) + ["LICENSE"] * (not licensed)]


def package_files() -> set[str]:
    """The files of the package that the repository holds."""
    listed = subprocess.run(["git", "ls-files", "dpaudit"], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.split())


def tried(command: list[str], folder: str) -> str:
    """What the installed `dpaudit` prints; ends this program where it fails."""
    program = Path(sys.executable).parent / "dpaudit"
    ended = subprocess.run([program, *command], cwd=folder, capture_output=True, text=True)
    if ended.returncode:
        sys.exit(f"dpaudit {' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def main(dist: str) -> None:
    if lost := missing(Path(dist), package_files()):
        sys.exit("left out: " + ", ".join(lost))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "noisy_count.toml").write_text(SPEC, encoding="utf-8")
        print(tried(["--version"], folder).strip())
        print(len(tried(["catalogue"], folder).splitlines()), "lines of catalogue")
        print(tried(["run", "noisy_count.toml", "--report", "report", "--no-progress"], folder).strip())
        if not Path(folder, "report", "index.html").is_file():
            sys.exit("dpaudit run wrote no report")


if __name__ == "__main__":
    main(sys.argv[1])

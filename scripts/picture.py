"""Makes docs/assets/report.png: the first screen of the page that README's example writes, by headless Chromium.

`make picture` runs it. It is made anew when the page of an audit has changed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "assets" / "report.png"
WIDTH, HEIGHT, SCALE = 1000, 712, 1.5  # CSS pixels, and how many of the picture are one
COLOURS = 64  # enough for a page of text, and a file a third as large


def main() -> int:
    """Runs the first two examples of README in a folder of their own, and takes the picture of the page in it."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        print("Chromium is needed: Debian's package is chromium", file=sys.stderr)
        return 1
    code = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)[:2]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "example.py").write_text("".join(code))
        subprocess.run([sys.executable, "example.py"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (page,) = Path(folder).glob("*.html")
        shot = Path(folder, "shot.png")
        screen = f"--window-size={WIDTH},{HEIGHT}", f"--force-device-scale-factor={SCALE}", "--hide-scrollbars"
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            *screen,
            f"--screenshot={shot}",
            page.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True)
        Image.open(shot).convert("RGB").quantize(COLOURS).save(TARGET, optimize=True)
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The digest of a question in its stored form."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def spec_hash(spec: dict[str, Any]) -> str:
    """The digest of a spec in its stored form."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""Scales, words and colours of figures."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from dpaudit.report.figures.panel import DARK, LIGHT, STYLE, Scale, breadth, fitted, number, padded
from tests.cases import for_each

GROUNDS = ("allowed", "event", "paper")
QUIET = ("rule", *GROUNDS)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("values", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_and_words_stand_out_from_every_ground(values: dict[str, str]) -> None:
    for name in values.keys() - set(QUIET):
        assert contrast(values[name], values["paper"]) >= 4.5, name
        assert all(contrast(values[name], values[ground]) >= 3.0 for ground in GROUNDS), name
    assert all(contrast(values["ink"], values[ground]) >= 7.0 for ground in GROUNDS)


def test_every_colour_has_a_name_of_its_own_in_light_and_dark() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)
    assert all(STYLE.count(f"--dp-{name}:") == 2 for name in LIGHT)


def test_ticks_are_few_in_order_and_on_the_scale() -> None:
    rng = random.Random(5)
    for _ in range(400):
        low = 10.0 ** rng.uniform(-9.0, 6.0)
        for scale in (
            Scale(low, low * 10.0 ** rng.uniform(0.1, 9.0), log=True),
            Scale(-low, low * rng.uniform(0.01, 5.0)),
        ):
            ticks = scale.ticks()
            places = [at for at, _ in ticks]
            assert 1 <= len(ticks) <= 7, scale
            assert places == sorted(set(places))
            assert all(-1e-6 <= scale(at) <= 1.0 + 1e-6 for at in places)
            assert len({text for _, text in ticks}) == len(ticks), (scale, ticks)
            for at, text in ticks:
                assert float(text.replace(",", "")) == pytest.approx(at, rel=6e-3, abs=1e-12)


def test_scales_put_what_lies_beyond_far_outside_and_no_further() -> None:
    scale = Scale(1e-3, 1.0, log=True)
    assert scale([0.0, 1e-3, 1.0, math.inf]).tolist() == [-20.0, 0.0, 1.0, 20.0]
    assert scale(-1.0) == -20.0
    assert padded([math.inf, 2.0]).high < 3.0
    assert padded([]) == padded([1.0])
    assert padded([0.0, 5.0], log=True).low > 0.0


def test_numbers_beside_ticks_say_what_they_stand_for() -> None:
    assert [number(each) for each in (1e-4, 2.5e-7, 0.01, 1.0, 3e6, 2e12)] == [
        "1e-4",
        "2.5e-7",
        "0.01",
        "1",
        "3,000,000",
        "2e12",
    ]
    assert number(1e-17, 0.1) == "0"


@for_each("text", ["W" * 500, "plain", "計數" * 60, "\x00" * 90, "\u202e" * 40, "", "a\nb", "🙂" * 50])
def test_words_are_cut_to_the_room_they_have(text: str) -> None:
    for room in (40.0, 142.0, 400.0):
        told = fitted(text, room)
        assert breadth(told) <= max(room, breadth("計計計計"))
        assert told.isprintable()


def test_short_words_are_left_as_they_are() -> None:
    assert fitted("noisy count", 400.0) == "noisy count"
    for one, other in itertools.pairwise(["", "a", "ab", "計"]):
        assert breadth(one) < breadth(other) or other == "計"

"""Colours of figures on a light or dark page: every colour is a CSS variable with two values."""

import colorsys
import re

LIGHT, DARK = "#ffffff", "#141a21"  # background colours
_INK = (0xE6, 0xEA, 0xEF)
_CONTRAST = 4.6
_HEX = re.compile(r"#[0-9a-fA-F]{6}\b")


class Colours:
    """The colours used on a page so far."""

    def __init__(self):
        self.used: set[str] = {LIGHT}

    def variable(self, colour: str) -> str:
        """The CSS value for a colour."""
        self.used.add(colour.lower())
        return f"var(--x{colour.lower()[1:]})"

    def within(self, style: str) -> str:
        """A piece of CSS with every colour replaced by its variable."""
        return _HEX.sub(lambda match: self.variable(match[0]), style)

    def css(self, dark: bool) -> str:
        """The declarations of the variables."""
        return "".join(
            f"--x{colour[1:]}:{darkened(colour) if dark else colour};"
            for colour in sorted(self.used)
        )


def darkened(colour: str) -> str:
    """A colour on a dark page: grey is inverted, and other colours are lightened until they are
    visible.
    """
    red, green, blue = _parts(colour)
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    if saturation < 0.08:
        low = _parts(DARK)
        return _text([a + (b / 255 - a) * (1 - light) for a, b in zip(low, _INK)])
    while (
        contrast(_text(colorsys.hls_to_rgb(hue, light, saturation)), DARK) < _CONTRAST
        and light < 0.95
    ):
        light += 0.02
    return _text(colorsys.hls_to_rgb(hue, light, saturation))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1 to 21, as defined by WCAG 2."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour) -> float:
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in _parts(colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _parts(colour) -> list[float]:
    return [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def _text(parts) -> str:
    return "#" + "".join(f"{round(255 * max(0.0, min(1.0, part))):02x}" for part in parts)

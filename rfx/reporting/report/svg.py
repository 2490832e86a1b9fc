"""Figures embedded in an HTML page: small, with unique identifiers, and with styles shared by the
whole page.
"""

import io
import re
import xml.etree.ElementTree as xml

from rfx import lazy, methods
from rfx.reporting import figures, style
from rfx.reporting.report.colours import Colours

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"-?\d+\.\d+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_DRAWN_BY = re.compile(
    r"(figure|axes|patch|line2d|text|xtick|ytick|matplotlib\.axis|legend|PathCollection|FillBetweenPolyCollection|"
    r"PolyCollection|LineCollection|QuadMesh)_\d+"
)


class Shelf:
    """Shared by the figures of one page: styles as classes, colours as variables."""

    def __init__(self):
        self.colours = Colours()
        self._classes: dict[str, str] = {}

    def style(self, text: str) -> str:
        """The class for an inline style."""
        text = ";".join(
            sorted(part.strip().replace(": ", ":") for part in text.split(";") if part.strip())
        )
        return self._classes.setdefault(
            self.colours.within(_rounded(text)), f"s{len(self._classes)}"
        )

    def css(self) -> str:
        return "".join(f"svg .{name}{{{text}}}" for text, name in self._classes.items())

    def inline(self, figure, prefix: str, title: str, description: str) -> str:
        """A saved figure as an <svg> element without its title and notes, which the page shows
        separately. prefix: prepended to every identifier in it.

        Curves of a method carry its name in data-m, so that a page can select them.
        """
        out = io.StringIO()
        with figures.styled(**{"svg.fonttype": "none"}):
            figures.draw_into(figure, out, "svg")
        root = xml.fromstring(out.getvalue())
        for metadata in root.findall(f"{_SVG}metadata"):
            root.remove(metadata)
        for parent in list(root.iter()):
            # its own style would apply to the whole page; a curve without points has a path without
            # a position
            for child in [
                one
                for one in parent
                if one.tag == f"{_SVG}style"
                or (one.tag == f"{_SVG}path" and not one.get("d"))
                or one.get("id") in (style.TITLE, style.NOTES)
            ]:
                parent.remove(child)
        needed = {
            name
            for element in root.iter()
            for value in element.attrib.values()
            for name in _REFERENCE.findall(value)
        }
        links = (element.get(_LINK, "") for element in root.iter())
        needed |= {link[1:] for link in links if link.startswith("#")}
        given: set[str] = set()
        for element in root.iter():
            self._mend(element, prefix, needed, given)
        left, _, width, height = map(float, root.get("viewBox", "").split())
        top, bottom = style.edges(figure)
        box = f"{left:g} {top:.2f} {width:g} {height - top - bottom:.2f}"
        heads = (("title", title), ("desc", description))
        for place, (tag, text) in enumerate(heads):
            made = xml.Element(tag, id=f"{prefix}-{tag}")
            made.text = text
            root.insert(place, made)
        root.attrib = {
            "viewBox": box,
            "role": "img",
            "aria-labelledby": f"{prefix}-title {prefix}-desc",
            "class": "plot",
            "style": f"max-width:{1.45 * width:.0f}px",
        }
        return re.sub(
            r">\s+<", "><", xml.tostring(root, encoding="unicode", short_empty_elements=False)
        )

    def _mend(self, element, prefix, needed, given):
        element.tag = element.tag.removeprefix(_SVG)
        name = element.attrib.pop("id", None)
        if name is not None:
            own = "" if _DRAWN_BY.fullmatch(name) else name
            if name in needed:
                element.set("id", f"{prefix}-{name}")
            elif own and own not in given:
                given.add(own)
                element.set("id", f"{prefix}-{re.sub(r'[^A-Za-z0-9_.-]+', '_', own)}")
            if own:
                method = method_of(own)
                if method:
                    element.set("data-m", method)
        if link := element.attrib.pop(_LINK, ""):
            # the image of a heat map is its own link target
            element.set("href", f"#{prefix}-{link[1:]}" if link.startswith("#") else link)
        for attribute in ("clip-path", "fill"):
            if "url(#" in element.get(attribute, ""):
                element.set(
                    attribute, _REFERENCE.sub(rf"url(#{prefix}-\1)", element.get(attribute))
                )
        if element.get("style"):
            element.set("class", self.style(element.attrib.pop("style")))
        for attribute in ("d", "x", "y", "transform", "width", "height"):
            if element.get(attribute):
                element.set(attribute, " ".join(_rounded(element.get(attribute)).split()))


def method_of(gid: str) -> str | None:
    """The method named by a curve's identifier; the longest name that matches."""
    found = [name for name in methods.names() if f"-{name}-" in f"-{gid}-"]
    return max(found, key=len, default=None)


def _rounded(text: str) -> str:
    return _NUMBER.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), text)


def key(name: str, shelf: Shelf) -> str:
    """The mark and line of a method, as in every figure, as a small <svg> for running text."""
    looks = style.look(name)
    mark = lazy.markers.MarkerStyle(looks["marker"])
    path = mark.get_path().transformed(mark.get_transform())
    letters = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}
    parts = []
    for points, code in path.iter_segments(simplify=False):
        places = (
            ""
            if code == 79
            else " ".join(f"{9 * x:.1f} {-9 * y:.1f}" for x, y in zip(points[::2], points[1::2]))
        )
        parts.append(letters[int(code)] + places)
    colour = shelf.colours.variable(looks["color"])
    fill = colour if mark.is_filled() else "none"
    return (
        '<svg class="key" viewBox="-12 -7 24 14" aria-hidden="true" focusable="false"><path'
        f' d="M-12 0H12" style="stroke:{colour}"/><path d="{"".join(parts)}"'
        f' style="stroke:{colour};fill:{fill}"/></svg>'
    )

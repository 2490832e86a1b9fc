"""Print the oldest versions that setup.cfg allows, one requirement per line, for `make
test-oldest`.
"""

import configparser
import re
from pathlib import Path

SETUP = Path(__file__).resolve().parent.parent / "setup.cfg"


def oldest(*extras) -> list[str]:
    """`name==version` for each `name>=version` of install_requires and of these extras; ValueError
    for one without a bound.
    """
    config = configparser.ConfigParser()
    config.read(SETUP)
    lines = config["options"]["install_requires"].split("\n")
    for extra in extras:
        lines += config["options.extras_require"][extra].split("\n")
    pins = []
    for line in filter(None, map(str.strip, lines)):
        found = re.fullmatch(r"([\w.-]+(?:\[\w+\])?)\s*>=\s*([\w.]+)", line)
        if not found:
            raise ValueError(f"setup.cfg: {line} has no lower bound of the form name>=version")
        pins.append(f"{found[1]}=={found[2]}")
    return pins


if __name__ == "__main__":
    print("\n".join(oldest("test")))

"""A cloud of many dots, light enough for a page."""

from collections import Counter
from collections.abc import Iterable

from markupsafe import Markup

from fewbench.report.svg import num, tag

GRID = 2.0  # drawing units: dots closer than that are one


def cloud(spots: Iterable[tuple[float, float]]) -> list[Markup]:
    """Draw dots, darker where there are more, in one path for each of three depths of shade.

    Ten thousand dots of their own would make a heavy page.
    """
    places = Counter((round(a / GRID), round(b / GRID)) for a, b in spots)
    paths = []
    for least, most, cls in ((1, 1, "few"), (2, 4, "some"), (5, 10**9, "many")):
        path = "".join(
            f"M{num(a * GRID)} {num(b * GRID)}h0"
            for (a, b), n in sorted(places.items())
            if least <= n <= most
        )
        if path:
            paths.append(tag("path", d=path, cls=f"cloud {cls}"))
    return paths

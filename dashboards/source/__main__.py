"""Writes the dashboards as the files that Grafana is provisioned with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards.source.mending import mending
from dashboards.source.overview import overview
from dashboards.source.runtime import runtime
from dashboards.source.stores import stores
from dashboards.source.streams import streams

FOLDER = Path(__file__).parents[1]
ALL: dict[str, Callable[[], Dashboard]] = {
    "overview": overview,
    "mending": mending,
    "streams": streams,
    "capture-and-stores": stores,
    "runtime": runtime,
}


def written(make: Callable[[], Dashboard]) -> str:
    """Return a dashboard as JSON, with the ids of its panels in their order."""
    document: dict[str, Any] = json.loads(JSONEncoder(sort_keys=True).encode(make().build()))
    for number, panel in enumerate(document["panels"], 1):
        panel["id"] = number
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> None:
    for name, make in ALL.items():
        (FOLDER / f"{name}.json").write_text(written(make), encoding="utf-8")


if __name__ == "__main__":
    main()

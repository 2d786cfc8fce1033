"""Play the conversations and say what came of them.

    uv run python -m tests.peers.history.run                      # all, and results.md anew
    uv run python -m tests.peers.history.run ai7 inverted mitm    # those whose name has these words

Exit code 1 if one is not as it should be. With words, results.md stays as it is.
"""

import asyncio
import sys

from tests.peers.history.rig.install import install
from tests.peers.history.rig.modes import Cell, cells, goals
from tests.peers.history.rig.play import play
from tests.peers.history.rig.table import RESULTS, table


def main() -> int:
    words = set(sys.argv[1:])
    chosen = [cell for cell in cells() if words <= set(cell.key.split("."))]
    normal = [Cell(cell.client, cell.mode, "plain", "direct") for cell in chosen]
    install()
    found = asyncio.run(play(list(dict.fromkeys(normal + chosen))))
    wrong = 0
    for cell in chosen:
        row = found.rows[cell]
        right = row.word in goals(cell) and not row.held["error"]
        wrong += not right
        print(f"{'ok ' if right else 'BAD'} {cell.key:45} {row.word} {row.held['error']}")
        for line in [] if right else row.lines:
            print(f"      {line}")
    for via, counted in found.counted.items():
        for series, count in sorted(counted.items()):
            print(f"{via:8} {series} {count:g}")
    print(f"{len(chosen)} conversations in {found.seconds:.0f} s, {wrong} not as they should be")
    if not words:
        RESULTS.write_text(table(found))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

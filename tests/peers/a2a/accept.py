"""Write what was seen last into expected.txt; the reasons are for a person to add.

python -m tests.peers.a2a.accept [FILE of a run]
"""

import json
import sys
from pathlib import Path

from tests.peers.a2a.rig.expect import accept
from tests.peers.a2a.rig.places import EXPECTED, RESULTS

if __name__ == "__main__":
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "last.json"
    EXPECTED.write_text(accept(json.loads(source.read_text())["rows"]))

"""The repair `snapshot-to-delta`. Read `addon.py` first, then `updates.py` and `reader.py`."""

from midstream_addons.snapshot_to_delta.addon import SnapshotToDelta

ADDON = SnapshotToDelta

"""The repair `strip-compaction`. Read `addon.py` first, then `evidence.py`."""

from midstream_addons.strip_compaction.addon import StripCompaction

ADDON = StripCompaction

"""The repair `replay-overlap`. Read `addon.py` first, then `offer.py`."""

from midstream_addons.replay_overlap.addon import ReplayOverlap

ADDON = ReplayOverlap

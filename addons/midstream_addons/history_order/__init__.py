"""The repair `history-order`. Read `addon.py` first, then `repair.py`."""

from midstream_addons.history_order.addon import HistoryOrder

ADDON = HistoryOrder

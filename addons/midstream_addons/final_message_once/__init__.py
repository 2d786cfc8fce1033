"""The repair `final-message-once`. Read `addon.py` first, then `message.py`."""

from midstream_addons.final_message_once.addon import FinalMessageOnce

ADDON = FinalMessageOnce

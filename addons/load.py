"""The one script for mitmproxy: `mitmdump -s addons/load.py --set midstream_config=FILE`."""

from midstream.hosts.mitm import Midstream

addons = [Midstream()]

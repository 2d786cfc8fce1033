"""The script that `midstream mitm` gives to mitmproxy."""

from midstream.hosts.mitm import Midstream

addons = [Midstream()]

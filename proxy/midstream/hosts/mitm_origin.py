"""Under which origin a client addressed a flow of mitmproxy.

In reverse mode mitmproxy has written the upstream's name over the client's `Host` before the first
hook runs (seen in 12.3.1), unless it is told to keep it; then only the address is left to which the
client connected. In the other modes clients name the upstream itself, and reach it through here.
"""

from mitmproxy import http
from mitmproxy.proxy import mode_specs

from midstream.hosts.origins import authority, origin


def client_origin(flow: http.HTTPFlow, *, keeps_host: bool) -> str:
    """Return scheme and authority; empty where unknown. `keeps_host` is `keep_host_header`."""
    request, connection = flow.request, flow.client_conn
    if not isinstance(connection.proxy_mode, mode_specs.ReverseMode):
        return origin(request.scheme, authority(request.scheme, _host(flow), request.port))
    scheme = "https" if connection.tls else "http"
    if keeps_host and request.host_header is not None:
        return origin(scheme, request.host_header)
    if connection.sockname is None:
        return ""
    host, port = connection.sockname[:2]
    return origin(scheme, authority(scheme, host, port))


def _host(flow: http.HTTPFlow) -> str:
    """Return the host a client names: where it does not know of the proxy, only `Host` does."""
    mode = flow.client_conn.proxy_mode
    named = isinstance(mode, mode_specs.RegularMode | mode_specs.UpstreamMode)
    return flow.request.host if named else flow.request.pretty_host

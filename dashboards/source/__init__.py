"""Where the Grafana dashboards come from: one module for each, and the pieces they are made of.

    uv run python -m dashboards.source

writes `dashboards/*.json`. The files are checked in; a test holds them against these modules.
"""

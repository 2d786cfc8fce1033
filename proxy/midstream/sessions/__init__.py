"""`midstream sessions`: session databases in which a server has filed its own summaries.

Read `layouts.py` first (the tables), then `findings.py` (what is wrong), then `repair.py`.
"""

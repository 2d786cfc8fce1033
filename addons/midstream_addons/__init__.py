"""The repairs of midstream, one file or package each."""

"""Speed and tightness, measured against other implementations in the same run: ``python -m benchmarks``."""

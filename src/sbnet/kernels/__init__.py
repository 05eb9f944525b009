"""Compiled kernels: arrays in, arrays out. They check nothing and raise nothing; their callers do."""

"""Tests of the log: one contract for every storage, then what only a disk can do wrong."""

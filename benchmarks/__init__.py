"""The benchmarks: this project beside its peers and the bare disk, as ratios in one run. See `benchmarks.__main__`."""

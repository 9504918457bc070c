"""What is known about each provider's API: one file a provider, found by the entry-point group of `apis`."""

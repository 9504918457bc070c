"""What is known about each provider's API: one file a provider, found through entry points by `finding`."""

"""Tools that agent frameworks call: steps, with no code changed."""

"""Model and tool calls become steps by themselves: hooks into HTTP libraries and frameworks, and what they share.

A hook turns a request into an `Ask` and hands it to `exchange.exchange_for`; the `Exchange` decides with the engine
whether the answer comes from history or from the provider, and records what comes. The hooks stand in files named after
their library; `engine.hooks` tells when they are set.
"""

"""Agent frameworks: what they call by themselves becomes steps.

A file for each. They use the hooks of `engine.hooks`, and nothing imports them before their framework is there.
"""

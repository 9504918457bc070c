"""What is measured: one module for each subject, a function for each job.

Jobs, as far as a subject has something to measure:

``steps``      ``n`` steps whose results are of a kind (``value``); ``flushed``: each survives loss of power
``prepare``    ``n`` completed steps, then SIGKILL
``resume``     a new process takes up what ``prepare`` left, until step ``n + 1`` is reached
``parallel``   ``n`` steps, ``width`` at a time, that do nothing, flushed
``imports``    what importing costs
"""

"""The actor: takes up a branch, runs steps, writes events, follows tasks and threads, ends.

::

    flags  options  stats  context        what a run is asked to be; what happened; whose code runs right now
    timers  identity  turnstile  cancelling   places of tasks and threads; the recorded order of things
    binding  inputs  payloads  hidden  outputs   arguments, notebook variables, stored values, side effects
    blame  ending  flushing  execution    one live execution
    steps  attempt  runner                one step: identity, attempts, the two drivers
    opening                               which branch, which history, whose lock
"""

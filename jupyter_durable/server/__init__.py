"""The server extension: everything that the panel shows and does, by REST, under the Jupyter server's own rules.

All routes lie under ``<base_url>jupyter-durable/v1/`` and need the server's authentication; POST needs its XSRF
header too. Answers are the shapes of `shapes`; every refusal is a `shapes.Problem`.

====== ========================================= =============================================== ==================
method path                                      parameters                                      answer
====== ========================================= =============================================== ==================
GET    about                                                                                     `About`
GET    runs                                                                                      `Runs`
GET    runs/RUN                                                                                  `RunDetail`
GET    runs/RUN/branches/BRANCH/steps            after=SEQ epoch=TEXT limit=N                    `Page`
GET    runs/RUN/branches/BRANCH/steps/NUMBER                                                     `StepDetail`
GET    spend                                     by=WORD run=RUN                                 `Bill`
GET    diff                                      run=RUN a=BRANCH b=BRANCH after=N limit=N only= `Diff`
POST   sql                                       body `SqlQuestion`                              `SqlAnswer`
GET    export                                    run=RUN                                         NDJSON of events
POST   decide                                    body `DecideQuestion`                           `Done`
POST   settle                                    body `SettleQuestion`                           `Done`
POST   fork                                      body `ForkQuestion`                             `Done`
POST   switch                                    body `SwitchQuestion`                           `Done`
POST   cancel                                    body `CancelQuestion`                           `Done`
POST   resume                                    body `ResumeQuestion`                           `Done`
GET    waiting                                                                                   `Waits`
POST   answer                                    body `AnswerQuestion`                           `Done`
POST   signal                                    body `SignalQuestion`                           `Done`
GET    openapi.json                                                                              OpenAPI 3.1
====== ========================================= =============================================== ==================

Every route but the last takes ``notebook=PATH``, the server's path of a notebook (as the contents API has it): the log
is ``.durable`` in the notebook's folder, or what ``JUPYTER_DURABLE_LOG`` names. Without it, the folder is the root.
RUN is a run's id. BRANCH is a branch's name (``main``) or id. ``after`` is -1 or absent for everything; ``limit`` is at
most 10,000 (1,000 if absent), and ``limit=0`` asks for totals alone. ``only=changed`` leaves equal rows out of a diff.
A diff without ``b`` takes the newest branch, without ``a`` the branch that ``b`` comes from.

Live: the server's event bus (``api/events/subscribe``, `app.serviceManager.events` in a front end) carries hints with
the ``schema_id`` that ``about`` tells, ``{log, run, branch, seq, status}``. A hint says *ask*; REST says what.

Nothing here runs user code, loads a value or holds ``log.duckdb``.
"""

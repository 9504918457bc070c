"""The views over the lines of a log: what people query with SQL.

They read only ``lines`` (columns as in `database.COLUMNS`) and ``live`` (executions that run right now), so the same
text serves the database file and a connection that joins it with the tails of journals. Column by column:

- ``runs``: run, name, notebook, branches, executions, steps, started, ended, status of the newest execution.
- ``branches``: run, branch, branch_name, origin_branch, origin_seq, executions, steps, started, ended, status.
- ``executions``: one row each, with the header's fields, the outcome (``status`` is ``running`` or ``interrupted``
  where there is none), ``first_seq``, ``last_seq``, and the whole ``header`` as JSON.
- ``events``: one row for each event: run, branch, execution, seq, type, time, its flat fields, ``data`` as JSON.
- ``steps``: one row for each step of a branch (its newest execution counts): status, attempts, started, ended,
  seconds, ``value`` as JSON (inert: nothing is loaded; ``blob`` names it where it is large), error, why.
- ``waiting``: what runs wait for: kind, name, question, choices, until, request.
- ``llm_calls`` and ``spend``: see `spend_views`.
"""

from __future__ import annotations

from jupyter_durable.log.spend_views import SPEND_VIEWS

_EXECUTIONS = """
CREATE VIEW executions AS
SELECT
    s.data ->> '$.run' AS run,
    s.data ->> '$.branch' AS branch,
    s.execution,
    s.data ->> '$.name' AS name,
    s.data ->> '$.branch_name' AS branch_name,
    to_timestamp(s.time) AS started,
    to_timestamp(e.time) AS ended,
    e.time - s.time AS seconds,
    coalesce(e.data ->> '$.status', CASE WHEN l.execution IS NULL THEN 'interrupted' ELSE 'running' END) AS status,
    e.data ->> '$.error.type' AS error_type,
    e.data ->> '$.error.message' AS error_message,
    CASE WHEN e.data IS NOT NULL THEN coalesce(CAST(e.data ->> '$.replayed' AS BIGINT), 0) END AS replayed,
    CASE WHEN e.data IS NOT NULL THEN coalesce(CAST(e.data ->> '$.live' AS BIGINT), 0) END AS live,
    s.seq AS first_seq,
    c.last_seq,
    s.data ->> '$.head.execution' AS head_execution,
    CAST(s.data ->> '$.head.seq' AS BIGINT) AS head_seq,
    s.data ->> '$.origin.branch' AS origin_branch,
    s.data ->> '$.origin.execution' AS origin_execution,
    CAST(s.data ->> '$.origin.seq' AS BIGINT) AS origin_seq,
    coalesce(CAST(s.data ->> '$.generation' AS BIGINT), 0) AS generation,
    coalesce(s.data ->> '$.purpose', 'run') AS purpose,
    coalesce(s.data ->> '$.notebook', '') AS notebook,
    coalesce(s.data ->> '$.path', '') AS path,
    coalesce(s.data ->> '$.cell', '') AS cell,
    coalesce(s.data ->> '$.source', '') AS source,
    coalesce(s.data ->> '$.code', '') AS code,
    CAST(s.data ->> '$.pid' AS BIGINT) AS pid,
    coalesce(s.data ->> '$.host', '') AS host,
    coalesce(s.data ->> '$.durability', 'power') AS durability,
    CAST(s.data AS JSON) AS header
FROM lines s
JOIN (SELECT execution, max(seq) AS last_seq FROM lines GROUP BY execution) c ON c.execution = s.execution
LEFT JOIN lines e ON e.execution = s.execution AND e.type = 'execution_ended'
LEFT JOIN live l ON l.execution = s.execution
WHERE s.type = 'execution_started'
"""

_EVENTS = """
CREATE VIEW events AS
SELECT
    x.data ->> '$.run' AS run,
    x.data ->> '$.branch' AS branch,
    l.execution,
    l.seq,
    l.type,
    to_timestamp(l.time) AS time,
    l.step,
    l.scope,
    l.name,
    l.digest,
    l.n,
    l.evidence,
    l.kind,
    l.attempt,
    l.pure,
    l.why,
    CAST(l.data AS JSON) AS data
FROM lines l
JOIN lines x ON x.execution = l.execution AND x.type = 'execution_started'
"""

_STEPS = """
CREATE VIEW steps AS
WITH begun AS (
    SELECT
        x.data ->> '$.run' AS run,
        x.data ->> '$.branch' AS branch,
        l.*,
    FROM lines l
    JOIN lines x ON x.execution = l.execution AND x.type = 'execution_started'
    WHERE l.type IN ('step_started', 'step_adopted', 'wait_started')
    QUALIFY row_number() OVER (
        PARTITION BY branch, coalesce(l.scope, ''), l.name, l.digest, coalesce(l.n, 0) ORDER BY l.seq DESC, l.time DESC
    ) = 1
),
ended AS (
    SELECT execution, step, type, time, attempt, data
    FROM lines
    WHERE type IN ('step_completed', 'step_not_stored', 'step_failed', 'step_cancelled', 'step_interrupted')
    QUALIFY row_number() OVER (PARTITION BY execution, step ORDER BY seq DESC) = 1
),
tried AS (
    SELECT execution, step, max(coalesce(attempt, 0)) + 1 AS attempts
    FROM lines
    WHERE type = 'attempt_failed'
    GROUP BY execution, step
),
settled AS (
    SELECT x.data ->> '$.branch' AS branch, l.step, l.time, l.data
    FROM lines l
    JOIN lines x ON x.execution = l.execution AND x.type = 'execution_started'
    WHERE l.type = 'step_settled' AND l.data ->> '$.choice' IN ('value', 'fail')
    QUALIFY row_number() OVER (PARTITION BY branch, l.step ORDER BY l.seq DESC) = 1
)
SELECT
    b.run,
    b.branch,
    b.execution,
    b.seq,
    coalesce(b.scope, '') AS scope,
    b.name,
    coalesce(b.kind, 'step') AS kind,
    CASE
        WHEN b.type = 'step_adopted' THEN 'adopted'
        WHEN s.data ->> '$.choice' = 'value' THEN 'completed'
        WHEN s.data ->> '$.choice' = 'fail' THEN 'failed'
        WHEN b.kind = 'run' AND e.data ->> '$.error.type' LIKE '%ChildCancelled' THEN 'cancelled'
        WHEN e.type IS NOT NULL THEN substr(e.type, 6)
        WHEN b.type = 'wait_started' THEN 'waiting'
        WHEN l.execution IS NOT NULL THEN 'running'
        WHEN b.kind = 'run' THEN 'interrupted'
        ELSE 'in_doubt'
    END AS status,
    1 + greatest(coalesce(b.attempt, 0), coalesce(t.attempts, 0), coalesce(e.attempt, 0)) AS attempts,
    to_timestamp(b.time) AS started,
    to_timestamp(CASE WHEN b.type = 'step_adopted' THEN b.time ELSE coalesce(s.time, e.time) END) AS ended,
    e.time - b.time AS seconds,
    CAST(CASE
        WHEN b.type = 'step_adopted' THEN json_extract(b.data, '$.payload.data')
        WHEN s.data IS NOT NULL THEN json_extract(s.data, '$.payload.data')
        WHEN e.type = 'step_completed' THEN json_extract(e.data, '$.data')
        WHEN e.type = 'step_not_stored' THEN json_extract(e.data, '$.salvage.data')
    END AS JSON) AS value,
    CASE
        WHEN b.type = 'step_adopted' THEN b.data ->> '$.payload.blob'
        WHEN s.data IS NOT NULL THEN s.data ->> '$.payload.blob'
        WHEN e.type = 'step_completed' THEN e.data ->> '$.blob'
        WHEN e.type = 'step_not_stored' THEN e.data ->> '$.salvage.blob'
    END AS blob,
    (CASE WHEN b.type = 'step_adopted' THEN b.data ELSE e.data END) ->> '$.error.type' AS error_type,
    (CASE WHEN b.type = 'step_adopted' THEN b.data ELSE e.data END) ->> '$.error.message' AS error_message,
    coalesce(b.why, '') AS why,
    b.digest,
    coalesce(b.n, 0) AS n,
    coalesce(b.pure, false) AS pure
FROM begun b
LEFT JOIN ended e ON e.execution = b.execution AND e.step = b.seq AND b.type <> 'step_adopted'
LEFT JOIN tried t ON t.execution = b.execution AND t.step = b.seq
LEFT JOIN settled s ON s.branch = b.branch AND s.step = b.seq
LEFT JOIN live l ON l.execution = b.execution
"""

_WAITING = """
CREATE VIEW waiting AS
SELECT
    s.run,
    s.branch,
    x.name AS run_name,
    s.seq AS step,
    s.kind,
    s.name,
    l.data ->> '$.question' AS question,
    json_extract(l.data, '$.choices') AS choices,
    to_timestamp(CAST(l.data ->> '$.until' AS DOUBLE)) AS until,
    s.started AS since,
    l.data ->> '$.request' AS request,
    x.path AS notebook,
    x.cell
FROM steps s
JOIN lines l ON l.execution = s.execution AND l.seq = s.seq
JOIN executions x ON x.execution = s.execution
WHERE s.status = 'waiting'
"""

_BRANCHES = """
CREATE VIEW branches AS
SELECT
    x.run,
    x.branch,
    arg_max(x.branch_name, x.first_seq) AS branch_name,
    arg_min(x.origin_branch, x.first_seq) AS origin_branch,
    arg_min(x.origin_seq, x.first_seq) AS origin_seq,
    count(*) AS executions,
    coalesce(any_value(s.steps), 0) AS steps,
    min(x.started) AS started,
    arg_max_null(x.ended, x.first_seq) AS ended,
    arg_max(x.status, x.first_seq) AS status
FROM executions x
LEFT JOIN (SELECT branch, count(*) AS steps FROM steps GROUP BY branch) s ON s.branch = x.branch
GROUP BY x.run, x.branch
"""

_RUNS = """
CREATE VIEW runs AS
SELECT
    run,
    arg_max(name, started) AS name,
    arg_max(path, started) AS notebook,
    count(DISTINCT branch) AS branches,
    count(*) AS executions,
    any_value(s.steps) AS steps,
    min(started) AS started,
    arg_max_null(ended, started) AS ended,
    arg_max(status, started) AS status
FROM executions
LEFT JOIN (SELECT run AS of_run, count(*) AS steps FROM steps GROUP BY run) s ON s.of_run = run
GROUP BY run
"""

VIEWS = {
    "executions": _EXECUTIONS,
    "events": _EVENTS,
    "steps": _STEPS,
    "waiting": _WAITING,
    "branches": _BRANCHES,
    "runs": _RUNS,
    **SPEND_VIEWS,
}
"""Name -> the statement that makes the view; each reads only what stands before it."""

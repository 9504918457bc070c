"""The views over what model calls cost: ``llm_calls`` and ``spend``.

``llm_calls`` has one row for each attempt of a captured model call: run, branch, execution, seq, step name, scope,
model, provider, url, when, how it ended, tokens and cost as told (NULL: not told, never 0), and what became of it:

- ``billed``: charged, and its answer is in use;
- ``wasted``: charged, or perhaps charged, and of no use. ``reason`` says why: ``in doubt`` (the process died, or the
  connection broke, before the answer was whole), ``retried`` (the attempt of the step around it failed, so it was asked
  anew, or a person had it asked anew), ``abandoned`` (on a branch that was left unfinished, and no other branch took it
  over);
- ``refused``: answered by an error, not charged;
- ``running``: on its way right now.

``spend`` has those of them that cost, and beside them rows of kind ``replayed``: what an execution took from history
instead of buying it (by model; ``calls`` and tokens are sums). All that a provider charged is ``billed`` + ``wasted``.
"""

from __future__ import annotations

_LLM_CALLS = """
CREATE VIEW llm_calls AS
WITH placed AS (
    SELECT x.data ->> '$.run' AS run, x.data ->> '$.branch' AS branch, l.*
    FROM lines l
    JOIN lines x ON x.execution = l.execution AND x.type = 'execution_started'
    WHERE l.type IN ('step_started', 'step_billed', 'step_completed', 'step_not_stored', 'step_failed',
        'attempt_failed', 'step_cancelled', 'step_interrupted', 'step_adopted')
),
asked AS (SELECT * FROM placed WHERE type = 'step_started' AND kind = 'model'),
bill AS (
    SELECT execution, step, data FROM placed WHERE type = 'step_billed'
    QUALIFY row_number() OVER (PARTITION BY execution, step ORDER BY seq DESC) = 1
),
ended AS (
    SELECT execution, step, seq, type, time, data
    FROM placed
    WHERE type IN ('step_completed', 'step_not_stored', 'step_failed', 'step_cancelled', 'step_interrupted')
    QUALIFY row_number() OVER (PARTITION BY execution, step ORDER BY seq DESC) = 1
),
failed AS (
    SELECT f.branch, f.seq AS failed_at,
        CASE WHEN coalesce(s.scope, '') = '' THEN '' ELSE s.scope || '/' END
            || s.name || ':' || substr(s.digest, 1, 6) || '.' || coalesce(s.n, 0) AS inner_scope
    FROM placed f
    JOIN placed s ON s.execution = f.execution AND s.seq = f.step AND s.type = 'step_started'
    WHERE f.type IN ('step_failed', 'attempt_failed') AND coalesce(s.kind, 'step') NOT IN ('model', 'run')
),
adopted AS (
    SELECT data ->> '$.execution' AS execution, CAST(data ->> '$.seq' AS BIGINT) AS seq
    FROM placed WHERE type = 'step_adopted'
),
newest AS (
    SELECT run, arg_max(branch, first_seen) AS branch
    FROM (SELECT run, branch, min(time) AS first_seen
          FROM (SELECT data ->> '$.run' AS run, data ->> '$.branch' AS branch, time
                FROM lines WHERE type = 'execution_started') GROUP BY run, branch)
    GROUP BY run
),
finished AS (
    SELECT s.data ->> '$.branch' AS branch
    FROM lines s JOIN lines e ON e.execution = s.execution AND e.type = 'execution_ended'
    WHERE s.type = 'execution_started' AND e.data ->> '$.status' IN ('completed', 'continued')
    GROUP BY ALL
),
told AS (
    SELECT
        a.run, a.branch, a.execution, a.seq, coalesce(a.scope, '') AS scope, a.name, a.digest, coalesce(a.n, 0) AS n,
        coalesce(a.attempt, 0) AS attempt, a.time AS began, e.time AS ended_at, e.type AS end_type, e.seq AS end_seq,
        e.data ->> '$.error.type' AS error_type, a.data AS request, b.data AS usage,
        l.execution IS NOT NULL AS is_live,
        max(CASE WHEN e.type = 'step_completed' THEN a.seq END) OVER (
            PARTITION BY a.branch, coalesce(a.scope, ''), a.name, a.digest, coalesce(a.n, 0)) AS last_answer
    FROM asked a
    LEFT JOIN bill b ON b.execution = a.execution AND b.step = a.seq
    LEFT JOIN ended e ON e.execution = a.execution AND e.step = a.seq
    LEFT JOIN live l ON l.execution = a.execution
),
of_failed AS (
    SELECT DISTINCT t.execution, t.seq
    FROM told t
    JOIN failed f ON f.branch = t.branch AND f.failed_at > t.end_seq
        AND (t.scope = f.inner_scope OR starts_with(t.scope, f.inner_scope || '/'))
),
judged AS (
    SELECT t.*, t.end_type = 'step_completed' AS answered, t.seq < t.last_answer OR g.seq IS NOT NULL AS retried,
        n.branch IS NOT NULL OR d.branch IS NOT NULL OR t.is_live OR o.seq IS NOT NULL AS in_use
    FROM told t
    LEFT JOIN newest n ON n.branch = t.branch
    LEFT JOIN finished d ON d.branch = t.branch
    LEFT JOIN of_failed g ON g.execution = t.execution AND g.seq = t.seq
    LEFT JOIN (SELECT DISTINCT execution, seq FROM adopted) o ON o.execution = t.execution AND o.seq = t.end_seq
)
SELECT
    t.run, t.branch, t.execution, t.seq, t.scope, t.name, t.attempt,
    to_timestamp(t.began) AS started,
    to_timestamp(t.ended_at) AS ended,
    t.ended_at - t.began AS seconds,
    coalesce(t.usage ->> '$.provider', t.request ->> '$.provider', '') AS provider,
    coalesce(t.usage ->> '$.model', t.request ->> '$.model', '') AS model,
    t.request ->> '$.url' AS url,
    coalesce(CAST(t.request ->> '$.stream' AS BOOLEAN), false) AS stream,
    CASE
        WHEN t.end_type IS NULL AND t.is_live THEN 'running'
        WHEN t.end_type = 'step_failed' AND t.usage IS NULL
            AND (t.error_type LIKE 'HTTP %' OR t.error_type SIMILAR TO '.*(ConnectError|ConnectTimeout|PoolTimeout)')
            THEN 'refused'
        WHEN t.answered AND NOT t.retried AND t.in_use THEN 'billed'
        ELSE 'wasted'
    END AS kind,
    CASE
        WHEN kind <> 'wasted' THEN ''
        WHEN NOT coalesce(t.answered, false) THEN 'in doubt'
        WHEN t.retried THEN 'retried'
        ELSE 'abandoned'
    END AS reason,
    CAST(t.usage ->> '$.input' AS BIGINT) AS input,
    CAST(t.usage ->> '$.output' AS BIGINT) AS output,
    CAST(t.usage ->> '$.cached' AS BIGINT) AS cached,
    CAST(t.usage ->> '$.cache_write' AS BIGINT) AS cache_write,
    CAST(t.usage ->> '$.reasoning' AS BIGINT) AS reasoning,
    CAST(t.usage ->> '$.cost' AS DOUBLE) AS cost,
    coalesce(t.usage ->> '$.prices', '') AS prices,
    CAST(t.request AS JSON) AS request
FROM judged t
"""

_SPEND = """
CREATE VIEW spend AS
SELECT
    c.run, x.name AS run_name, x.path AS notebook, x.cell, c.branch, x.branch_name, c.execution, c.seq, c.name AS step,
    c.scope, c.attempt, c.kind, c.reason, c.started AS time, CAST(c.started AT TIME ZONE 'UTC' AS DATE) AS day,
    c.provider, c.model, 1 AS calls, CASE WHEN c.input IS NULL AND c.output IS NULL THEN 1 ELSE 0 END AS unknown,
    c.input, c.output, c.cached, c.cache_write, c.reasoning, c.cost, c.prices
FROM llm_calls c
JOIN executions x ON x.execution = c.execution
WHERE c.kind IN ('billed', 'wasted')
UNION ALL
SELECT
    x.run, x.name, x.path, x.cell, x.branch, x.branch_name, l.execution, l.seq, NULL, '', 0, 'replayed', '',
    to_timestamp(l.time), CAST(to_timestamp(l.time) AT TIME ZONE 'UTC' AS DATE),
    coalesce(m ->> '$.provider', ''), coalesce(m ->> '$.model', ''),
    CASE WHEN i = 1 THEN CAST(l.data ->> '$.calls' AS BIGINT) ELSE 0 END,
    CASE WHEN i = 1 THEN coalesce(CAST(l.data ->> '$.unknown' AS BIGINT), 0) ELSE 0 END,
    CAST(m ->> '$.input' AS BIGINT), CAST(m ->> '$.output' AS BIGINT), CAST(m ->> '$.cached' AS BIGINT),
    CAST(m ->> '$.cache_write' AS BIGINT), CAST(m ->> '$.reasoning' AS BIGINT), CAST(m ->> '$.cost' AS DOUBLE),
    coalesce(m ->> '$.prices', '')
FROM (
    SELECT r.*,
        unnest(CASE WHEN (r.data -> '$.models') IS NULL THEN [NULL] ELSE CAST(r.data -> '$.models' AS JSON[]) END) AS m,
        generate_subscripts(CASE WHEN (r.data -> '$.models') IS NULL THEN [NULL]
            ELSE CAST(r.data -> '$.models' AS JSON[]) END, 1) AS i
    FROM lines r WHERE r.type = 'replayed'
) l
JOIN executions x ON x.execution = l.execution
"""

SPEND_VIEWS = {"llm_calls": _LLM_CALLS, "spend": _SPEND}
"""Name -> the statement that makes the view; they read the views of `views` too."""

/** Questions to the log in SQL, which can only read. */
import * as React from 'react';
import { duration } from '../format';
import type { ISqlAnswer } from '../shapes';
import type { Store } from '../store';
import { Table } from './values';
import { Button, useWords } from './words';

const FIRST = 'SELECT name, kind, status, count(*) AS steps\nFROM steps\nGROUP BY ALL\nORDER BY steps DESC';

export function SqlView({ store }: { store: Store }): JSX.Element {
  const words = useWords();
  const [query, setQuery] = React.useState(FIRST);
  const [answer, setAnswer] = React.useState<ISqlAnswer | null>(null);
  const [problem, setProblem] = React.useState('');
  const [asking, setAsking] = React.useState(false);
  const ask = (): void => {
    if (!store.api || asking) {
      return;
    }
    setAsking(true);
    store.api
      .sql(query)
      .then(
        found => {
          setAnswer(found);
          setProblem('');
        },
        reason => {
          setAnswer(null);
          setProblem(reason instanceof Error ? reason.message : String(reason));
        }
      )
      .finally(() => setAsking(false));
  };
  return (
    <div className="jp-Durable-sql">
      <textarea
        aria-label={words.__('SQL query')}

        spellCheck={false}
        rows={6}
        value={query}
        data-lm-suppress-shortcuts="true"
        onChange={event => setQuery(event.target.value)}
        onKeyDown={event => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            event.stopPropagation();
            ask();
          }
        }}
      />
      <div className="jp-Durable-toolbar">
        <Button accept onClick={ask} disabled={asking}>
          {words.__('Run query')}
        </Button>
        <span className="jp-Durable-note">
          {words.__(
            'Views: %1. Ctrl Enter runs it.',
            'runs, branches, executions, events, steps, llm_calls, spend'
          )}
        </span>
      </div>
      {asking && (
        <p role="status" className="jp-Durable-note">
          {words.__('The log is being asked …')}
        </p>
      )}
      {problem && !asking && (
        <div className="jp-Durable-error" role="alert">
          {problem}
        </div>
      )}
      {answer && !asking && (
        <>
          <p role="status" className="jp-Durable-note">
            {words._n('%1 row', '%1 rows', answer.rows.length)}
            {answer.cut && `, ${words.__('there is more')}`} · {duration(answer.seconds)}
            {answer.partial &&
              ` · ${words.__('another program has log.duckdb open: folded runs are left out')}`}
          </p>
          <Table
            label={words.__('Answer')}
            table={{
              columns: answer.columns,
              types: answer.types,
              rows: answer.rows,
              total: answer.rows.length
            }}
          />
        </>
      )}
    </div>
  );
}

/** Recorded values, outputs and errors. Everything here may come from a stranger's log: it is shown as text. */
import * as React from 'react';
import { bytes, plain } from '../format';
import type { IErrorView, IOutputView, ITableView, IValueView } from '../shapes';
import { useWords } from './words';

/** Pictures that no browser runs anything of; SVG is not among them. */
export const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** A picture out of base64; `null` if it is none that is shown. */
export function Picture({
  media,
  data,
  alt
}: {
  media: string;
  data: string;
  alt: string;
}): JSX.Element | null {
  if (!PICTURES.includes(media) || !/^[A-Za-z0-9+/=\s]+$/.test(data)) {
    return null;
  }
  return (
    <img className="jp-Durable-picture" alt={alt} src={`data:${media};base64,${data.replace(/\s/g, '')}`} />
  );
}

/** A long text that can be reached and scrolled by keyboard. */
export function Pre({
  text,
  label,
  role = 'region'
}: {
  text: string;
  label: string;
  /** A group, where several have the same label. */
  role?: 'region' | 'group';
}): JSX.Element {
  return (
    <pre className="jp-Durable-pre" tabIndex={0} role={role} aria-label={label}>
      {text}
    </pre>
  );
}

export function Value({ value, label }: { value: IValueView; label: string }): JSX.Element {
  const words = useWords();
  const text =
    value.json !== null && typeof value.json === 'object' ? JSON.stringify(value.json, null, 2) : value.text;
  return (
    <>
      <div className="jp-Durable-note">
        {[value.type, bytes(value.size)].join(' · ')}
        {value.cut && ` · ${words.__('shown in part')}`}
      </div>
      {value.table ? <Table table={value.table} label={label} /> : <Pre text={text} label={label} />}
    </>
  );
}

export function Table({ table, label }: { table: ITableView; label: string }): JSX.Element {
  const words = useWords();
  return (
    <div className="jp-Durable-tableBox" tabIndex={0} role="region" aria-label={label}>
      <table className="jp-Durable-table">
        <thead>
          <tr>
            {table.columns.map((name, i) => (
              <th key={i} scope="col" title={table.types[i]}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={j}>{cellText(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {table.total > table.rows.length && (
        <div className="jp-Durable-note">{words.__('%1 of %2 rows', table.rows.length, table.total)}</div>
      )}
    </div>
  );
}

export function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) {
    return '';
  }
  return typeof cell === 'object' ? JSON.stringify(cell) : String(cell);
}

export function ErrorBox({ error }: { error: IErrorView }): JSX.Element {
  const words = useWords();
  return (
    <div className="jp-Durable-error">
      <strong>{error.type}</strong>
      <div>{error.message}</div>
      {error.traceback && (
        <details>
          <summary>{words.__('Traceback')}</summary>
          <Pre text={plain(error.traceback)} label={words.__('Traceback')} />
        </details>
      )}
    </div>
  );
}

export function Outputs({ outputs }: { outputs: readonly IOutputView[] }): JSX.Element {
  const words = useWords();
  return (
    <>
      {outputs.map((output, i) => {
        if (output.kind !== 'display') {
          return <Pre key={i} text={plain(output.text)} label={output.kind} />;
        }
        const media = PICTURES.find(type => typeof output.data[type] === 'string');
        return media ? (
          <Picture
            key={i}
            media={media}
            data={String(output.data[media])}
            alt={words.__('Output of the step')}
          />
        ) : (
          <Pre key={i} text={cellText(output.data['text/plain'])} label={words.__('Output of the step')} />
        );
      })}
    </>
  );
}

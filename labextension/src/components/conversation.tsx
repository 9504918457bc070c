/** A model call as a conversation: what was sent, and what came back. */
import * as React from 'react';
import type { IMessage, IModelCall, IPart } from '../shapes';
import { Picture, Pre } from './values';
import { useWords } from './words';

/** Of a long conversation the beginning is closed: what was asked last is what one looks for. */
const OPEN = 4;

export function Conversation({ call }: { call: IModelCall }): JSX.Element {
  const words = useWords();
  const early = call.messages.slice(0, -OPEN);
  const options = Object.entries(call.options);
  return (
    <>
      <div className="jp-Durable-note">
        {[call.model, call.provider, call.api].filter(Boolean).join(' · ')}
        {call.stop && ` · ${words.__('stopped: %1', call.stop)}`}
        {call.status !== null && call.status >= 400 && ` · ${words.__('HTTP status %1', call.status)}`}
      </div>
      {call.note && <div className="jp-Durable-note">{call.note}</div>}
      {early.length > 0 && (
        <details>
          <summary>{words._n('%1 earlier message', '%1 earlier messages', early.length)}</summary>
          <Messages messages={early} />
        </details>
      )}
      <Messages messages={call.messages.slice(-OPEN)} />
      <div className="jp-Durable-reply">
        <Messages messages={call.reply} />
      </div>
      {!call.complete && (
        <div className="jp-Durable-note">{words.__('The answer was not read to its end.')}</div>
      )}
      {call.broken && (
        <div className="jp-Durable-note">
          {call.broken.type}: {call.broken.message}
        </div>
      )}
      {call.tools.length > 0 && (
        <div className="jp-Durable-note">{words.__('Tools offered: %1', call.tools.join(', '))}</div>
      )}
      {options.length > 0 && (
        <details>
          <summary>{words.__('Options')}</summary>
          <Pre text={JSON.stringify(call.options, null, 2)} label={words.__('Options')} />
        </details>
      )}
      {call.request !== null && (
        <details>
          <summary>{words.__('Request as it was sent')}</summary>
          <Pre text={JSON.stringify(call.request, null, 2)} label={words.__('Request as it was sent')} />
        </details>
      )}
      {call.answer !== null && (
        <details>
          <summary>{words.__('Answer as it came')}</summary>
          <Pre
            text={typeof call.answer === 'string' ? call.answer : JSON.stringify(call.answer, null, 2)}
            label={words.__('Answer as it came')}
          />
        </details>
      )}
    </>
  );
}

function Messages({ messages }: { messages: readonly IMessage[] }): JSX.Element {
  return (
    <>
      {messages.map((message, i) => (
        <div key={i} className={`jp-Durable-message jp-mod-${known(message.role)}`}>
          <div className="jp-Durable-role">{message.role}</div>
          {message.parts.map((part, j) => (
            <Part key={j} part={part} />
          ))}
        </div>
      ))}
    </>
  );
}

function known(role: string): string {
  return ['system', 'user', 'assistant', 'tool'].includes(role) ? role : 'other';
}

function Part({ part }: { part: IPart }): JSX.Element {
  const words = useWords();
  switch (part.kind) {
    case 'text':
      return <div className="jp-Durable-text">{part.text}</div>;
    case 'thinking':
      return (
        <details>
          <summary>{words.__('Thinking')}</summary>
          <div className="jp-Durable-text">{part.text}</div>
        </details>
      );
    case 'image':
      return (
        <div>
          <Picture media={part.media} data={part.data} alt={words.__('Image in the conversation')} />
          {!part.data && (
            <div className="jp-Durable-note">{words.__('Image: %1', part.text || part.media)}</div>
          )}
        </div>
      );
    case 'tool_call':
      return (
        <div>
          <div className="jp-Durable-note">{words.__('calls %1', part.name)}</div>
          <Pre text={part.text} label={words.__('Arguments of %1', part.name)} />
        </div>
      );
    case 'tool_result':
      return (
        <div>
          <div className="jp-Durable-note">
            {part.name ? words.__('result of %1', part.name) : words.__('result of a tool')}
          </div>
          <div className="jp-Durable-text">{part.text}</div>
        </div>
      );
    default:
      return <div className="jp-Durable-note">{part.text || part.media}</div>;
  }
}

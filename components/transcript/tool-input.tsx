import { TerminalText } from '@/components/ui/terminal-text';
import type { ToolCallItem } from '@/lib/protocol/read-models';

/** What a call was given: a command as typed, an edit as removed and added lines, anything else as JSON. */
export function ToolInput({ call }: { call: Pick<ToolCallItem, 'args' | 'argsText'> }) {
  const args = call.args;
  if (typeof args !== 'object' || args === null || Array.isArray(args)) {
    const text = typeof args === 'string' ? args : call.argsText;
    return text === '' ? null : <TerminalText text={text} label="input" />;
  }
  const { command, old_string, new_string, content, prompt, ...rest } = args as Record<string, unknown>;
  const others = Object.keys(rest).length > 0 ? rest : null;
  if (typeof command === 'string') {
    return (
      <>
        <TerminalText
          text={command}
          label="command"
          className="before:float-left before:mr-2 before:font-mono before:text-ink-3 before:text-xs before:content-['$']"
        />
        {others && <Fields fields={others} />}
      </>
    );
  }
  if (typeof old_string === 'string' || typeof new_string === 'string') {
    return (
      <>
        {others && <Fields fields={others} />}
        <ChangedLines removed={old_string} added={new_string} />
      </>
    );
  }
  const long = content ?? prompt;
  if (typeof long === 'string') {
    return (
      <>
        {others && <Fields fields={others} />}
        <TerminalText text={long} label={content === undefined ? 'prompt' : 'content'} />
      </>
    );
  }
  return Object.keys(args).length === 0 ? null : <Fields fields={args as Record<string, unknown>} />;
}

function Fields({ fields }: { fields: Record<string, unknown> }) {
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 text-xs">
      {Object.entries(fields).map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-ink-3">{name}</dt>
          <dd className="whitespace-pre-wrap break-words font-mono text-ink-2">
            {typeof value === 'string' ? value : JSON.stringify(value, null, 2)}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function ChangedLines({ removed, added }: { removed: unknown; added: unknown }) {
  const lines = [
    ...(typeof removed === 'string' && removed !== '' ? removed.split('\n').map((text) => ['-', text]) : []),
    ...(typeof added === 'string' && added !== '' ? added.split('\n').map((text) => ['+', text]) : []),
  ];
  return (
    <pre className="max-h-96 overflow-auto text-xs">
      {lines.map(([sign, text], at) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of a text have no other identity
          key={at}
          className={sign === '+' ? 'block text-working' : 'block text-failed'}
        >
          {sign} {text}
        </span>
      ))}
    </pre>
  );
}

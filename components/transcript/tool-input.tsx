import type { ToolCallItem } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { type ReactNode, useMemo } from 'react';
import { asWritten, type InputPart, inputParts } from '@/components/requests/input-parts';
import { Name } from '@/components/ui/name';
import type { VerbatimPage } from '@/components/ui/verbatim-text';
import { firstPages, VerbatimText } from '@/components/ui/verbatim-text';
import { diffOf, editsOf } from './edits';
import { ToolDiff } from './tool-diff';
import { ToolTodos } from './tool-todos';
import { todosOf } from './tool-words';

/** A call's input: edits as a diff, to-do lists as a list, anything else as `InputParts`. */
export function ToolInput({ call }: { call: Pick<ToolCallItem, 'name' | 'args' | 'argsText'> }): ReactNode {
  const { name, args, argsText } = call;
  const edits = useMemo(() => editsOf({ name, args }), [name, args]);
  const todos = useMemo(() => todosOf({ name, args }), [name, args]);
  const parts = useMemo(() => {
    const rest = (edits ?? todos)?.rest;
    if (rest === undefined) return inputParts({ args, argsText });
    return [...inputParts({ args: rest, argsText: '' }), ...asWritten(args as object, argsText)];
  }, [edits, todos, args, argsText]);
  return (
    <>
      <InputParts parts={parts} />
      {edits !== null && <ToolDiff edits={edits} diff={diffOf(edits, args as object)} />}
      {todos !== null && <ToolTodos todos={todos.todos} />}
    </>
  );
}

/**
 * A complete, unaltered input: commands as typed, edits as removed and added text, other values by name. The reader
 * decides from it what may run.
 */
export function InputParts({ parts }: { parts: readonly InputPart[] }): ReactNode {
  const shown = useMemo(() => {
    const pages = firstPages(parts.map(({ text }) => text));
    return parts.map((part, index) => ({ part, first: pages[index] as VerbatimPage }));
  }, [parts]);
  const fields = shown.filter(({ part }) => part.kind === 'field');
  const blocks = shown.filter(({ part }) => part.kind !== 'field');
  const before = blocks.filter(({ part }) => part.kind === 'command');
  const after = blocks.filter(({ part }) => part.kind !== 'command');
  if (parts.length === 0) return null;
  return (
    <div className="space-y-1 text-ink-2">
      {before.map(({ part, first }) => (
        <Block key={part.name} part={part} first={first} />
      ))}
      {fields.length > 0 && <Fields fields={fields} />}
      {after.map(({ part, first }) => (
        <Block key={`${part.kind}:${part.name}`} part={part} first={first} isNamed={parts.length > 1} />
      ))}
    </div>
  );
}

/** A part with its first page. */
interface ShownPart {
  part: InputPart;
  first: VerbatimPage;
}

const LOOK: Record<InputPart['kind'], string> = {
  command: "before:float-left before:mr-2 before:font-mono before:text-ink-3 before:text-xs before:content-['$']",
  removed:
    "border-failed border-l-2 pl-2 before:float-left before:mr-2 before:font-mono before:text-xs text-failed before:content-['-']",
  added:
    "border-working border-l-2 pl-2 before:float-left before:mr-2 before:font-mono before:text-xs text-working before:content-['+']",
  long: '',
  whole: '',
  field: '',
};

const COPIED: Record<InputPart['kind'], string | null> = {
  command: 'command',
  removed: 'removed text',
  added: 'added text',
  long: null,
  whole: 'input',
  field: null,
};

function Block({ part, first, isNamed = false }: ShownPart & { isNamed?: boolean }) {
  const { kind, name, text } = part;
  const caption = kind === 'long' ? name : kind === 'whole' && isNamed ? 'as written' : null;
  return (
    <div>
      {caption !== null && <p className={clsx('text-ink-3 text-xs', kind === 'long' && 'font-mono')}>{caption}</p>}
      <VerbatimText text={text} first={first} label={COPIED[kind] ?? name} className={LOOK[kind]} />
    </div>
  );
}

/** The only field that is not code: the agent's words about the call. */
const DESCRIPTION = 'description';

/** Names are shown in full; inputs with long names are shown as one text. */
function Fields({ fields }: { fields: readonly ShownPart[] }) {
  return (
    <dl className="grid grid-cols-[fit-content(40%)_minmax(0,1fr)] gap-x-3 text-xs">
      {fields.map(({ part: { name, text, isJson }, first }) => (
        <div key={name} className="contents">
          <dt className={clsx('text-ink-3 [overflow-wrap:anywhere]', name !== DESCRIPTION && 'font-mono')}>
            <Name
              text={name === DESCRIPTION ? 'Description' : name}
              max={Number.POSITIVE_INFINITY}
              signs={Number.POSITIVE_INFINITY}
            />
          </dt>
          <dd className={clsx('min-w-0', isJson && 'text-[color:var(--code-number)]')}>
            <VerbatimText text={text} first={first} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

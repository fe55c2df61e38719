'use client';

import { clsx } from 'clsx';
import { useMemo, useState } from 'react';
import { UnfoldButton } from '@/components/ui/unfold';
import type { VerbatimPage } from '@/components/ui/verbatim-text';
import { firstPages, VerbatimLines, VerbatimText } from '@/components/ui/verbatim-text';
import type { Todo } from './tool-words';

/** Items shown at first and added per press. */
const STEP = 50;

const LOOK: Record<Todo['state'], { word: string; text: string }> = {
  pending: { word: 'to do', text: 'text-ink-2' },
  in_progress: { word: 'in progress', text: 'font-medium text-ink' },
  completed: { word: 'done', text: 'text-ink-3' },
};

export function ToolTodos({ todos }: { todos: readonly Todo[] }) {
  const [steps, setSteps] = useState(1);
  const count = Math.min(todos.length, steps * STEP);
  // A list that grows keeps the items that are shown.
  const pages = useMemo(() => {
    const steps = Array.from({ length: Math.ceil(count / STEP) }, (_, step) =>
      todos.slice(step * STEP, (step + 1) * STEP),
    );
    return steps.flatMap((step) => firstPages(step.map(({ text }) => text)));
  }, [todos, count]);
  const left = todos.length - count;
  if (todos.length === 0) return <p className="text-ink-3 text-xs">No to-dos.</p>;
  return (
    <>
      <ul aria-label="To do" className="space-y-0.5 text-xs">
        {todos.slice(0, count).map((todo, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: items may be equal and never move
          <TodoItem key={index} todo={todo} first={pages[index] as VerbatimPage} />
        ))}
      </ul>
      {left > 0 && (
        <UnfoldButton onPress={() => setSteps(steps + 1)} className="text-2xs text-ink-2">
          Show {Math.min(left, STEP)} of {left.toLocaleString('en')} more
        </UnfoldButton>
      )}
    </>
  );
}

function TodoItem({ todo, first }: { todo: Todo; first: VerbatimPage }) {
  const { text, state, activeText } = todo;
  const { word, text: className } = LOOK[state];
  return (
    <li className="flex items-start gap-2">
      <Box state={state} />
      <div className="min-w-0 flex-1">
        <span className="sr-only">{word}: </span>
        <VerbatimText text={text} first={first} className={clsx('todo', className)} />
        {state === 'in_progress' && activeText !== null && (
          <p className="text-ink-3">
            <VerbatimLines text={activeText} />
          </p>
        )}
      </div>
    </li>
  );
}

/** A checkbox of 12 px: empty, half or ticked. A hidden word gives the state to screen readers. */
function Box({ state }: { state: Todo['state'] }) {
  return (
    <svg
      viewBox="0 0 12 12"
      width="12"
      height="12"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.25"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      className={clsx('mt-[3px] shrink-0', state === 'in_progress' ? 'text-working' : 'text-ink-3')}
    >
      <rect x="1" y="1" width="10" height="10" rx="2.5" />
      {state === 'completed' && <path d="M3.5 6.25l1.75 1.75 3.25-4" />}
      {state === 'in_progress' && (
        <rect x="3.5" y="3.5" width="5" height="5" rx="1" fill="currentColor" stroke="none" />
      )}
    </svg>
  );
}

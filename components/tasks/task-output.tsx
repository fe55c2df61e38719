'use client';

import { useState } from 'react';
import { useSelected } from '@/components/live/use-folded';
import { stripAnsi } from '@/components/ui/ansi';
import { AnsiText } from '@/components/ui/ansi-text';
import { AgoInWords } from '@/components/ui/clock';
import { CopyButton } from '@/components/ui/copy-button';
import { ErrorText } from '@/components/ui/error-text';
import { lastPart } from '@/components/ui/last-part';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { countOf, sizeOf } from '@/components/ui/size-of';
import { UnfoldButton } from '@/components/ui/unfold';
import { nameText } from '@/components/ui/verbatim';
import type { Task } from '@/lib/protocol/read-models';
import { outputSize, type TaskOutput } from '@/lib/protocol/task-output';
import { useTaskOutput } from './use-tasks';

/** What is shown until all of it is asked for. */
const TAIL = { lines: 8, characters: 960 };

const viewCode = new CodeOnDemand(async () => (await import('./output-view')).OutputView);

/** What a task writes: its end, live, and all that is kept of it on asking. */
export function TaskOutputPart({ task }: { task: Task }) {
  const { store, query } = useTaskOutput(task);
  const output = useSelected(store, ({ value }) => (value === undefined ? undefined : value.output));
  const [all, setAll] = useState(false);
  // Here before it is asked for: it opens where the reader looks, in one step.
  usePreload(viewCode);
  if (output === undefined && query.isError) {
    return (
      <p className="py-1 text-ink-3 text-xs">
        {query.error.message}{' '}
        <button type="button" onClick={() => query.refetch()} className="underline hover:text-ink">
          Try again
        </button>
      </p>
    );
  }
  const name = `Output of ${nameText(task.description)}`;
  const newest = output?.parts.at(-1)?.text.trimEnd() ?? '';
  const tail = lastPart(newest, TAIL);
  const isCut = tail.isCut || (output?.parts.length ?? 0) > 1 || (output?.parts[0]?.from ?? 0) > 0;
  return (
    <section aria-label={name} className="my-1 min-w-0">
      {all && output ? (
        <OnDemand code={viewCode} name="The whole output" props={{ output, name, isLive: task.status === 'running' }} />
      ) : (
        <pre className="min-h-5 overflow-hidden whitespace-pre-wrap break-words rounded bg-raised px-2 py-1 text-ink-2 text-xs [overflow-wrap:anywhere]">
          {output === undefined ? 'Loading what it wrote…' : <AnsiText text={tail.text.replace(/^\s*\n/, '')} />}
        </pre>
      )}
      {output && (
        <p className="mt-0.5 flex flex-wrap items-center gap-x-3 text-2xs text-ink-3">
          {(isCut || all) && (
            <UnfoldButton onPress={() => setAll(!all)}>
              {all ? 'Show only its end' : 'Show all, and search'}
            </UnfoldButton>
          )}
          <OutputFacts output={output} isLive={task.status === 'running'} />
          <CopyButton label="Copy output" text={() => wholeText(output)} />
        </p>
      )}
      {output?.error != null && (
        <p className="text-2xs text-failed">
          <ErrorText text={output.error} />
        </p>
      )}
    </section>
  );
}

function OutputFacts({ output, isLive }: { output: TaskOutput; isLive: boolean }) {
  const { redacted, lastAt, hasEnded } = output;
  return (
    <>
      <span className="tabular">{sizeOf(outputSize(output))}</span>
      {redacted > 0 && <span>{countOf(redacted, 'secret')} taken out</span>}
      {isLive && !hasEnded && (
        <span className="tabular">
          last written <AgoInWords at={lastAt} />
        </span>
      )}
    </>
  );
}

/** As it is shown: without control characters, and with a line where something is not kept. */
function wholeText({ parts }: TaskOutput): string {
  return parts.map(({ text }) => stripAnsi(text)).join('\n[…]\n');
}

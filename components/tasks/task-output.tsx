'use client';

import type { Task, TaskOutput, TaskOutputDetail } from '@interlude/protocol/read-models';
import { foldTaskOutput, outputSize } from '@interlude/protocol/task-output';
import { useMemo, useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { FoldedSnapshot } from '@/components/live/folded-snapshot';
import { entriesOf } from '@/components/live/row-frame';
import { useFolded, useSelected } from '@/components/live/use-folded';
import { stripAnsi } from '@/components/ui/ansi';
import { CopyButton } from '@/components/ui/copy-button';
import { RecordAgo } from '@/components/ui/day';
import { plural } from '@/components/ui/duration';
import { formatBinaryBytes } from '@/components/ui/format-size';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { UnfoldButton } from '@/components/ui/unfold';
import { quoted } from '@/components/ui/verbatim';
import { ErrorText } from '@/components/ui/verbatim-text';
import { endOfOutput } from './output-rows';
import { OutputText } from './output-text';
import { pathOf } from './use-task-detail';

/** The part shown until the reader opens the whole output. */
const TAIL = { lines: 8, characters: 960 };

const viewCode = new CodeOnDemand(async () => (await import('./output-view')).OutputView);

/** The end of a task's output, live. Loads the whole output on demand. */
export function TaskOutputPart({ task }: { task: Task }) {
  const { store, query } = useTaskOutput(task);
  const output = useSelected(store, ({ value }) => (value === undefined ? undefined : value.output));
  const [all, setAll] = useState(false);
  const tail = useMemo(() => (output == null ? null : endOfOutput(output, TAIL)), [output]);
  // Preloaded, so that it opens without a jump.
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
  const name = `Output of ${quoted(task.description)}`;
  return (
    <section aria-label={name} className="my-1 min-w-0">
      {output && (
        <p className="mb-0.5 flex flex-wrap items-center gap-x-3 text-2xs text-ink-3">
          {/* Above the content that it unfolds. */}
          {(tail?.isAll === false || all) && (
            <UnfoldButton onPress={() => setAll(!all)}>
              {all ? 'Show only the end' : 'Show all and search'}
            </UnfoldButton>
          )}
          <OutputFacts output={output} isLive={task.status === 'running'} />
          <CopyButton label="Copy output" text={() => plainOutput(output)} />
        </p>
      )}
      {all && output ? (
        <OnDemand code={viewCode} name="The whole output" props={{ output, name, isLive: task.status === 'running' }} />
      ) : (
        <div className="min-h-[26px] overflow-hidden rounded bg-raised px-2 py-1 font-mono text-ink-2 text-xs">
          {output === undefined
            ? 'Loading output…'
            : tail?.rows.map(({ spans }, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
                <OutputText key={index} spans={spans} />
              ))}
        </div>
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
      <span className="tabular">{formatBinaryBytes(outputSize(output))}</span>
      {redacted > 0 && <span>{plural(redacted, 'secret')} removed</span>}
      {isLive && !hasEnded && (
        <span className="tabular">
          last output <RecordAgo at={lastAt} />
        </span>
      )}
    </>
  );
}

/** The output without control characters, with a line for each hole. */
function plainOutput({ parts }: TaskOutput): string {
  return parts.map(({ text }) => stripAnsi(text)).join('\n[…]\n');
}

/** A task's output, kept current while it is shown. */
function useTaskOutput(task: Task) {
  const path = `${pathOf({ ...task, runId: null }, '/output')}?position=${task.position}`;
  return useFolded(
    ['task-output', path],
    `session:${task.sessionId}`,
    () =>
      new FoldedSnapshot<TaskOutputDetail>({
        read: (signal) => fetchJson(path, signal),
        fold: (detail, frames) => foldTaskOutput(detail, entriesOf(frames)),
      }),
  );
}

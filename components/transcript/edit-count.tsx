'use client';

import type { ToolCallItem } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { useEffect, useMemo, useReducer } from 'react';
import { enqueueIdle } from '@/components/ui/idle-queue';
import { countedEdits } from './changed-files';
import { diffAtOnce, diffOf } from './edits';

/** How many lines an edit adds and removes: `+12 −3`. In colour once it was made. */
export function EditCount({ call }: { call: ToolCallItem }) {
  const { name, args, edits: changed, status } = call;
  const counted = useMemo(
    () => countedEdits({ name, args, ...(changed === undefined ? {} : { edits: changed }) }),
    [name, args, changed],
  );
  const [, compared] = useReducer((count: number) => count + 1, 0);
  const diff = counted === null ? null : diffAtOnce(counted.edits, counted.of);
  const isLeft = counted !== null && diff === null;
  useEffect(() => {
    if (!isLeft) return;
    const turn = enqueueIdle(() => {
      diffOf(counted.edits, counted.of);
      compared();
    });
    return () => turn.cancel();
  }, [isLeft, counted]);
  if (counted === null || diff === null) return null;
  const { edits } = counted;
  const { added, removed } = diff;
  const isMade = status === 'completed';
  return (
    <span className="tabular flex shrink-0 gap-1.5 font-mono text-2xs text-ink-3">
      <span className="sr-only">{inWords(added, edits.isWhole ? null : removed)}</span>
      <span aria-hidden="true" className={clsx(isMade && added > 0 && 'text-working')}>
        +{added.toLocaleString('en')}
      </span>
      {!edits.isWhole && (
        <span aria-hidden="true" className={clsx(isMade && removed > 0 && 'text-failed')}>
          −{removed.toLocaleString('en')}
        </span>
      )}
    </span>
  );
}

/** @param removed null if nobody knows */
function inWords(added: number, removed: number | null): string {
  const lines = `${added.toLocaleString('en')} ${added === 1 ? 'line' : 'lines'}`;
  return removed === null ? `${lines} written` : `${lines} added, ${removed.toLocaleString('en')} removed`;
}

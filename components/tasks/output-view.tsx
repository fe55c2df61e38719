'use client';

import type { TaskOutput } from '@interlude/protocol/read-models';
import { useMemo, useRef, useState } from 'react';
import { useFollow } from '@/components/ui/use-follow';
import { OutputLines } from './output-lines';
import { findInOutput, outputRows } from './output-rows';
import { OutputSearch } from './output-search';

/**
 * All that is kept of what a task wrote, searched and live. Once the reader scrolls up or searches, it stands still: what
 * comes meanwhile, and what is not kept any more, moves nothing under their eyes.
 *
 * @param name what the box is called
 */
export function OutputView({ output, name, isLive }: { output: TaskOutput; name: string; isLive: boolean }) {
  const [held, setHeld] = useState<TaskOutput | null>(null);
  const shown = held ?? output;
  const rows = useMemo(() => outputRows(shown), [shown]);
  const [wanted, setWanted] = useState('');
  const hits = useMemo(() => findInOutput(rows, wanted), [rows, wanted]);
  const [chosen, setChosen] = useState<number | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const follows = held === null;
  useFollow(scroller, (doesFollow) => setHeld(doesFollow ? null : (before) => before ?? output));

  // The newest is the first that is looked at.
  const at = hits.length === 0 ? null : Math.min(chosen ?? hits.length - 1, hits.length - 1);
  const step = (by: 1 | -1) => {
    if (at === null) return;
    setHeld((before) => before ?? output);
    setChosen((at + by + hits.length) % hits.length);
  };
  return (
    <div className="rounded bg-raised">
      <OutputSearch
        name={name}
        wanted={wanted}
        onWanted={(text) => {
          setWanted(text);
          setChosen(null);
          if (text !== '') setHeld((before) => before ?? output);
        }}
        hits={hits.length}
        at={at}
        onStep={step}
        onLeave={() => scroller.current?.focus()}
      />
      <OutputLines
        scroller={scroller}
        name={name}
        rows={rows}
        hits={hits}
        current={at === null ? null : (hits[at] ?? null)}
        follows={follows}
      />
      {held !== null && held !== output && (
        <button
          type="button"
          onClick={() => {
            setHeld(null);
            scroller.current?.focus();
          }}
          className="w-full border-t px-2 py-1 text-left text-2xs text-accent hover:underline"
        >
          {isLive ? 'More was written. Go to the end' : 'Go to the end'}
        </button>
      )}
    </div>
  );
}

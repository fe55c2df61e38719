'use client';

import { useState } from 'react';
import { plural } from '@/components/ui/duration';
import type { ToolCallItem } from '@/lib/protocol/read-models';
import { useHoldTail } from './hold-tail';
import { ToolCallLine } from './tool-call-line';

/** A longer run shows its ends; the middle is one line until asked for. */
const LONGEST = 14;
const HEAD = 4;
const TAIL = 6;

/** Tool calls in a row, as a tight list. */
export function ToolRun({ calls }: { calls: readonly ToolCallItem[] }) {
  const [all, setAll] = useState(false);
  const hold = useHoldTail();
  const folded = !all && calls.length > LONGEST;
  const head = folded ? calls.slice(0, HEAD) : calls;
  const tail = folded ? calls.slice(-TAIL) : [];
  const hidden = calls.length - head.length - tail.length;
  return (
    <div className="my-1.5">
      {head.map((call) => (
        <ToolCallLine key={call.id} call={call} />
      ))}
      {hidden > 0 && (
        <button
          type="button"
          onClick={() => {
            hold();
            setAll(true);
          }}
          className="py-[3px] pl-[21px] text-ink-3 text-xs underline decoration-line-strong underline-offset-2 hover:text-ink"
        >
          Show {plural(hidden, 'more call')}
        </button>
      )}
      {tail.map((call) => (
        <ToolCallLine key={call.id} call={call} />
      ))}
    </div>
  );
}

'use client';

import type { ToolCallItem } from '@interlude/protocol/read-models';
import { useState } from 'react';
import { plural } from '@/components/ui/duration';
import { UnfoldButton } from '@/components/ui/unfold';
import type { AskedRequests } from './requests-elsewhere';
import { ToolCallLine } from './tool-call-line';

/** Shown with each asking. */
const MORE = 100;
/** A longer run shows its ends; the middle is one line until asked for. */
export const LONGEST_RUN = 14;
const HEAD = 4;
const TAIL = 6;

/** Tool calls in a row, as a tight list, with what was asked about each. */
export function ToolRun(props: { calls: readonly ToolCallItem[]; requests: AskedRequests }) {
  const { calls, requests } = props;
  const [asked, setAsked] = useState(0);
  const headCount = HEAD + asked * MORE;
  const folded = calls.length > Math.max(LONGEST_RUN, headCount + TAIL);
  const head = folded ? calls.slice(0, headCount) : calls;
  const tail = folded ? calls.slice(-TAIL) : [];
  const hidden = calls.length - head.length - tail.length;
  return (
    <div className="my-1.5">
      {head.map((call) => (
        <ToolCallLine key={call.id} call={call} request={requests.get(call.id)} />
      ))}
      {hidden > 0 && (
        <UnfoldButton onPress={() => setAsked(asked + 1)} className="py-[3px] pl-[21px] text-ink-3 text-xs">
          {hidden <= MORE
            ? `Show ${plural(hidden, 'more call')}`
            : `Show ${MORE} of ${hidden.toLocaleString('en')} more calls`}
        </UnfoldButton>
      )}
      {tail.map((call) => (
        <ToolCallLine key={call.id} call={call} request={requests.get(call.id)} />
      ))}
    </div>
  );
}

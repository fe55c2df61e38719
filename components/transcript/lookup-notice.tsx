'use client';

import { X } from 'lucide';
import { Icon } from '@/components/ui/icon';
import { OVERLAY } from '@/components/ui/in-view';

/** Anchor of the session's first turn, which is known once all turns are loaded. */
export const FIRST_TURN = 'first-turn';

/** The lookup of a link's target: in progress, or failed with the reason. */
export type Lookup = { anchor: string; fromAddress: boolean } & (
  | { state: 'seeking' }
  | { state: 'missing' }
  | { state: 'failed'; reason: string }
);

/** Notice that a link's target can't be shown. Overlays the transcript, so that nothing moves. */
export function LookupNotice(props: {
  lookup: Lookup | null;
  turnCount: number;
  /** True if the session's oldest turns were removed. */
  isCut: boolean;
  onRetry: (lookup: Lookup) => void;
  onClose: () => void;
}) {
  const { lookup, turnCount, isCut, onRetry, onClose } = props;
  return (
    <div role="status" aria-label="Link" className="pointer-events-none absolute inset-x-4 top-2 z-10">
      {lookup !== null && (
        <p
          {...OVERLAY}
          className="pointer-events-auto mx-auto flex w-fit max-w-prose items-start gap-3 rounded-md border border-line-strong bg-ground px-3 py-2 text-ink-2 text-xs shadow-lg"
        >
          <span className="tabular min-w-0">{wordsOf(lookup, turnCount, isCut)}</span>
          {lookup.state === 'failed' && (
            <button
              type="button"
              onClick={() => onRetry(lookup)}
              className="shrink-0 text-ink underline decoration-line-strong underline-offset-2 hover:decoration-current"
            >
              Retry
            </button>
          )}
          {lookup.state !== 'seeking' && (
            <button
              type="button"
              aria-label="Dismiss"
              onClick={onClose}
              className="hit mt-[2.5px] shrink-0 text-ink-3 hover:text-ink"
            >
              <Icon of={X} size={13} />
            </button>
          )}
        </p>
      )}
    </div>
  );
}

function wordsOf(lookup: Lookup, turnCount: number, isCut: boolean): string {
  // An anchor starts with its kind: `task-12`.
  const what =
    lookup.anchor === FIRST_TURN ? 'first turn' : `linked ${lookup.anchor.slice(0, lookup.anchor.indexOf('-'))}`;
  switch (lookup.state) {
    case 'seeking':
      return `Looking for the ${what}… ${turnCount.toLocaleString('en')} turns searched`;
    case 'missing': {
      // A running task is still in the session when its turn is gone.
      const missing = isCut
        ? `The ${what} is not in this transcript. It may have been removed with the oldest turns.`
        : `The ${what} is not in this session.`;
      const where = isCut ? 'Showing the newest turns.' : 'Showing its newest turns.';
      return lookup.fromAddress ? `${missing} ${where}` : missing;
    }
    case 'failed':
      return `The ${what} could not be loaded: ${lookup.reason}`;
  }
}

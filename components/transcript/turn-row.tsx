'use client';

import type { Turn } from '@interlude/protocol/read-models';
import { Boundary } from '@/components/ui/boundary';
import { TurnArticle } from './turn-article';

/** A turn of the transcript. One that can't be rendered is one line, and the others stand. */
export function TurnRow({ turn, flash }: { turn: Turn; flash: boolean }) {
  return (
    <Boundary of={turn} fallback={<BrokenTurn turn={turn} />}>
      <TurnArticle turn={turn} flash={flash} />
    </Boundary>
  );
}

/** It keeps the turn's address, so that links to it still lead there. */
export function BrokenTurn({ turn }: { turn: Turn }) {
  return (
    <article
      id={`turn-${turn.id}`}
      aria-label="Turn that can’t be shown"
      tabIndex={-1}
      data-turn={turn.id}
      className="px-4 py-3 text-ink-3 text-xs outline-none sm:pl-[86px]"
    >
      This turn can’t be shown.{' '}
      <button type="button" onClick={() => location.reload()} className="underline hover:text-ink">
        Reload
      </button>
    </article>
  );
}

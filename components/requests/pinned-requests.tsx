'use client';

import type { ReactNode } from 'react';
import { JumpLink } from '@/components/ui/jump';
import { useHydrated } from '@/components/ui/now';
import type { RequestItem } from '@/lib/protocol/read-models';
import { useVisibleRequests } from './request-board';

/** What the agent waits for, kept in sight while its place in the transcript is not. */
export function PinnedRequests(props: {
  requests: readonly RequestItem[];
  renderRequest: (item: RequestItem) => ReactNode;
}) {
  const { requests, renderRequest } = props;
  const visible = useVisibleRequests();
  const hydrated = useHydrated();
  const hidden = requests.filter(({ id }) => !visible.has(id));
  const [first] = hidden;
  if (!hydrated || first === undefined) return null;
  return (
    // biome-ignore lint/a11y/useSemanticElements: it holds a section for each request
    <div role="group" aria-label="Waiting for you" className="shrink-0 border-line border-t">
      <div className="mx-auto max-h-[45dvh] max-w-[960px] overflow-y-auto px-4 py-2 sm:pr-6 sm:pl-[86px]">
        {renderRequest(first)}
        <p className="mt-1 flex gap-3 text-2xs text-ink-3">
          <JumpLink anchor={`request-${first.id}`} className="underline hover:text-ink">
            Show where it was asked
          </JumpLink>
          {hidden.length > 1 && <span>{hidden.length - 1} more after this</span>}
        </p>
      </div>
    </div>
  );
}

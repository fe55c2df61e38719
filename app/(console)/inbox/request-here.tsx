'use client';

import { useAgentSummary } from '@/components/agents/use-agents';
import { type RequestedItem, useAnswerStore, useRequest } from '@/components/inbox/item-request';
import { ActionsProvider } from '@/components/live/actions';
import { useFleet } from '@/components/live/use-fleet';
import { renderRequest } from '../render-request';
import { SessionLiveness } from '../session-liveness';

/** A full permission request or question, answered in the inbox. */
export function RequestHere({ item }: { item: RequestedItem }) {
  const actions = useAnswerStore(item.sessionId);
  const { data, error, refetch } = useRequest(item, actions);
  const agent = useAgentSummary(item.agentId);
  const session = useFleet(({ sessions }) => sessions.get(item.sessionId));
  if (data === undefined) {
    return (
      <p role="status" className="py-2 text-2xs text-ink-3">
        {error === null ? (
          'Loading the request…'
        ) : (
          <>
            <span className="text-failed">The request could not be loaded: {error.message}</span>{' '}
            <button type="button" onClick={() => void refetch()} className="underline hover:text-ink">
              Try again
            </button>
          </>
        )}
      </p>
    );
  }
  return (
    <ActionsProvider store={actions}>
      <SessionLiveness session={session} agent={agent}>
        {renderRequest(data.request)}
      </SessionLiveness>
    </ActionsProvider>
  );
}

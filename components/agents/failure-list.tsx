'use client';

import { clsx } from 'clsx';
import Link from 'next/link';
import { useState } from 'react';
import { sessionTitle } from '@/components/sessions/session-words';
import { Ago } from '@/components/ui/clock';
import { Name } from '@/components/ui/name';
import type { AgentDetail, Insight, SessionSummary } from '@/lib/protocol/read-models';
import { seeFailures } from './see-failures';
import { unseenOf, useSeenWhileShown } from './use-seen-while-shown';

/** What failed around an agent: hooks that died, the newest first. What is shown here counts as seen. */
export function FailureList({ detail }: { detail: Pick<AgentDetail, 'agent' | 'insights' | 'sessions'> }) {
  const { agent, insights, sessions } = detail;
  const newest = unseenOf(insights).at(-1);
  useSeenWhileShown(detail);
  return (
    <>
      <ul>
        {insights.map((insight) => (
          <Failure
            key={insight.position}
            insight={insight}
            session={sessions.find(({ id }) => id === insight.sessionId) ?? null}
          />
        ))}
      </ul>
      {newest !== undefined && <MarkAsSeen agentId={agent.id} newest={newest} />}
    </>
  );
}

/** What a hook said as it failed. */
const MOST_CHARACTERS = 4_000;

function Failure({ insight, session }: { insight: Insight; session: SessionSummary | null }) {
  const { position, agentId, subject, detail, occurredAt, seenAt } = insight;
  return (
    <li data-insight={position} className="border-line border-b py-2">
      <p className="flex flex-wrap items-baseline gap-x-3">
        <span className={clsx('wrap-anywhere font-mono text-xs', seenAt === null ? 'text-failed' : 'text-ink-2')}>
          <Name text={subject} /> hook
        </span>
        <span className="wrap-anywhere min-w-0 flex-1 text-ink-2 text-xs">
          <Name text={detail.trim()} most={MOST_CHARACTERS} />
        </span>
        <span className="tabular text-2xs text-ink-3">
          {seenAt === null && <span className="text-failed">new · </span>}
          <Ago at={occurredAt} />
        </span>
      </p>
      <p className="flex flex-wrap gap-x-3 text-ink-3 text-xs">
        <Link
          href={`/agents/${encodeURIComponent(agentId)}/logs#${position}`}
          className="underline underline-offset-2 hover:text-ink"
        >
          In the log
          <span className="sr-only">
            : <Name text={subject} /> hook
          </span>
        </Link>
        {session === null ? (
          <span>No session is named</span>
        ) : (
          <Link
            href={`/sessions/${encodeURIComponent(session.id)}`}
            className="truncate underline underline-offset-2 hover:text-ink"
          >
            <Name text={sessionTitle(session)} />
          </Link>
        )}
      </p>
    </li>
  );
}

function MarkAsSeen({ agentId, newest }: { agentId: string; newest: Insight }) {
  const [failure, setFailure] = useState<string | null>(null);
  const mark = async () => {
    setFailure(null);
    await seeFailures(agentId, newest.position).catch((error) => setFailure(String(error?.message ?? error)));
  };
  return (
    <p className="mt-2 flex flex-wrap gap-x-3 text-xs">
      <button type="button" onClick={mark} className="text-ink-2 underline underline-offset-2 hover:text-ink">
        Mark as seen
      </button>
      <span aria-live="polite" className="text-failed">
        {failure !== null && `Not marked: ${failure}`}
      </span>
    </p>
  );
}

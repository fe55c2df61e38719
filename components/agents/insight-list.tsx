'use client';

import { isHookSignal } from '@interlude/protocol/insight';
import type { Position } from '@interlude/protocol/position';
import type { Insight, SessionSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { type ReactNode, useRef, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { sessionTitle } from '@/components/sessions/session-labels';
import { RecordAgo } from '@/components/ui/day';
import { Link } from '@/components/ui/link';
import { Name, Phrase } from '@/components/ui/name';
import { useVisibleRow } from '@/components/ui/visible-rows';
import { SeenWhileShown, seeFailures, unseenOf } from './seen-while-shown';
import type { LiveAgent } from './use-agents';

/** Longest detail text shown; the log has the full text. */
const MAX_OF_FAILURE = 4_000;
const MAX_OF_SIGNAL = 400;
/** Longest value shown. */
const MAX_OF_VALUE = 120;

/** Insights from an agent's log lines, newest first. */
export function InsightList({ insights, sessions }: Pick<LiveAgent, 'insights' | 'sessions'>) {
  return (
    <ul>
      {insights.map((insight) => (
        <InsightItem
          key={insight.position}
          insight={insight}
          session={sessions.find(({ id }) => id === insight.sessionId) ?? null}
        />
      ))}
    </ul>
  );
}

/** An insight with links to its log line and session. */
export function InsightItem({ insight, session }: { insight: Insight; session: SessionSummary | null }) {
  const { position, agentId, detail, isFailure, occurredAt, seenAt } = insight;
  const isNew = isFailure && seenAt === null;
  const row = useRef<HTMLLIElement>(null);
  useVisibleRow(row, isNew ? position : null);
  return (
    <li ref={row} className="border-line border-b py-2">
      <p className="flex flex-wrap items-baseline gap-x-3">
        <span className={clsx('wrap-anywhere min-w-0 font-mono text-xs', isNew ? 'text-failed' : 'text-ink-2')}>
          <Subject insight={insight} />
        </span>
        <span className="wrap-anywhere min-w-0 flex-1 basis-40 text-ink-2 text-xs">
          <Phrase text={detail.trim()} max={isFailure ? MAX_OF_FAILURE : MAX_OF_SIGNAL} />
        </span>
        <span className="tabular text-2xs text-ink-3">
          {/* Stays in the layout once seen, so the text beside it doesn't rewrap. */}
          {isFailure && <span className={isNew ? 'text-failed' : 'invisible'}>new · </span>}
          <RecordAgo at={occurredAt} />
        </span>
      </p>
      <p className="flex flex-wrap gap-x-3 text-ink-3 text-xs">
        <Link
          href={`/agents/${encodeURIComponent(agentId)}/logs#${position}`}
          className="underline underline-offset-2 hover:text-ink"
        >
          In the log
          <span className="sr-only">
            : <InsightName insight={insight} />
          </span>
        </Link>
        {!isHookSignal(insight) && insight.source !== '' && (
          <span className="wrap-anywhere min-w-0">
            from <Name text={insight.source} />
          </span>
        )}
        {session !== null ? (
          <Link
            href={`/sessions/${encodeURIComponent(session.id)}`}
            className="truncate underline underline-offset-2 hover:text-ink"
          >
            <Phrase text={sessionTitle(session)} />
          </Link>
        ) : (
          isFailure && <span>No session</span>
        )}
      </p>
    </li>
  );
}

/** The hook's name for a hook signal, else the signal's own name. */
function InsightName({ insight }: { insight: Insight }): ReactNode {
  if (!isHookSignal(insight)) return <Name text={insight.signal} />;
  return (
    <>
      <Name text={insight.source} /> hook
    </>
  );
}

function Subject({ insight }: { insight: Insight }): ReactNode {
  const { value, outcome } = insight;
  const isHook = isHookSignal(insight);
  return (
    <>
      <InsightName insight={insight} />
      {value !== null && (
        <>
          {' '}
          <span className="tabular text-ink">
            <Name text={String(value)} max={MAX_OF_VALUE} />
          </span>
        </>
      )}
      {outcome !== null && !isHook && (
        <>
          {' · '}
          <Name text={outcome} />
        </>
      )}
    </>
  );
}

/** An agent's failures, newest first. Failures shown here are marked as seen. */
export function FailureList({ agent, insights, sessions }: Pick<LiveAgent, 'agent' | 'insights' | 'sessions'>) {
  return (
    <SeenWhileShown agent={agent} insights={insights}>
      <InsightList insights={insights} sessions={sessions} />
    </SeenWhileShown>
  );
}

/** Marks all failures as seen. Place it beside a heading, so that nothing below moves when it disappears. */
export function MarkAsSeen({ agentId, insights }: { agentId: string; insights: readonly Insight[] }) {
  const mayAct = useMayAct();
  const newest = unseenOf(insights).at(-1);
  return mayAct && newest !== undefined && <MarkUpTo agentId={agentId} upTo={newest.position} />;
}

function MarkUpTo({ agentId, upTo }: { agentId: string; upTo: Position }) {
  const [failure, setFailure] = useState<string | null>(null);
  const mark = async () => {
    setFailure(null);
    await seeFailures(agentId, upTo).catch((error) => setFailure(String(error?.message ?? error)));
  };
  return (
    <p className="flex min-w-0 flex-wrap gap-x-3 text-xs">
      <button type="button" onClick={mark} className="text-ink-2 underline underline-offset-2 hover:text-ink">
        Mark as seen
      </button>
      <span aria-live="polite" className="text-failed">
        {failure !== null && `Could not mark as seen: ${failure}`}
      </span>
    </p>
  );
}

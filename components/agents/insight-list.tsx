import { isHookSignal } from '@interlude/protocol/insight';
import type { Insight, SessionSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { type ReactNode, useRef } from 'react';
import { sessionTitle } from '@/components/sessions/session-words';
import { Ago } from '@/components/ui/clock';
import { Link } from '@/components/ui/link';
import { Name } from '@/components/ui/name';
import { useVisibleRow } from '@/components/ui/visible-rows';
import type { LiveAgent } from './use-agents';

/** Of what was said with it. What nobody has to look at takes no more room than a paragraph: the log has all of it. */
const MOST_OF_FAILURE = 4_000;
const MOST_OF_SIGNAL = 400;
/** Of a value: it stands beside its name. */
const MOST_OF_VALUE = 120;

/** What an agent's log lines tell beside their words, the newest first. */
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

/** What a log line told of an agent, with the way to that line and to its session. */
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
          <Name text={detail.trim()} most={isFailure ? MOST_OF_FAILURE : MOST_OF_SIGNAL} />
        </span>
        <span className="tabular text-2xs text-ink-3">
          {/* stays in the layout once seen: the text beside it must not rewrap */}
          {isFailure && <span className={isNew ? 'text-failed' : 'invisible'}>new · </span>}
          <Ago at={occurredAt} className="inline-block min-w-[4ch] text-right" />
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
            <Name text={sessionTitle(session)} />
          </Link>
        ) : (
          isFailure && <span>No session is named</span>
        )}
      </p>
    </li>
  );
}

/** A hook that died is known by the hook's name, everything else by its own. */
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
            <Name text={String(value)} most={MOST_OF_VALUE} />
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

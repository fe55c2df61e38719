import type { Refusal } from '@interlude/protocol/agent-limits';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { Link } from '@/components/ui/link';
import { Name, Quoted } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';

/** In the place of the composer where nobody would read what is written, before anybody has written it. */
export function ComposerRefusal(props: {
  refusal: Refusal;
  sessionId: string;
  /** The agent that can be asked instead; null while its row has not come. */
  other: Pick<AgentSummary, 'connection' | 'status'> | null;
}) {
  const { refusal, sessionId, other } = props;
  const { reason } = refusal;
  const instead = refusal.instead?.sessionId === sessionId ? null : refusal.instead;
  return (
    <section aria-label="Composer" className="shrink-0 border-line border-t">
      <p className="mx-auto flex max-w-[960px] flex-wrap items-baseline gap-x-3 gap-y-1 px-4 py-3 text-ink-2 text-xs sm:pr-6 sm:pl-[86px]">
        <span className="min-w-0">
          You can’t write here: <Name text={reason} />.
        </span>
        {instead !== null && other?.connection === 'away' && (
          <span className="min-w-0">
            <Quoted text={instead.agentId} /> is offline
            {other.status?.source === 'demo' && ' until the demo runs again'}.
          </span>
        )}
        {instead !== null && other?.connection !== 'away' && (
          <Link
            prefetch={false}
            href={`/sessions/${encodeURIComponent(instead.sessionId)}`}
            aria-label={`Write to ${quoted(instead.agentId)} instead`}
            className="font-medium text-ink underline hover:text-accent"
          >
            Write to <Quoted text={instead.agentId} /> instead
          </Link>
        )}
      </p>
    </section>
  );
}

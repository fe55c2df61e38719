'use client';

import { commandsOf, limitsOf, outageOf, troubleOf } from '@interlude/protocol/agent-status-view';
import type { AgentDetail, ProducerSummary } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import type { ReactNode } from 'react';
import { List } from '@/components/live/list';
import { LevelSwitch } from '@/components/logs/level-switch';
import { SessionRow } from '@/components/sessions/session-row';
import { Ago, TimeOfDay } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { Link } from '@/components/ui/link';
import { Name } from '@/components/ui/name';
import { SentenceList } from '@/components/ui/sentence-list';
import { Term } from '@/components/ui/term';
import { nameText } from '@/components/ui/verbatim';
import { VerbatimText } from '@/components/ui/verbatim-text';
import { FailureList, InsightList, MarkAsSeen } from './insight-list';
import { ParkedList, QuarantineList } from './parked-list';
import { CommandList, RunnerFacts } from './runner-facts';
import { TroubleLine } from './trouble-line';
import { useAgent } from './use-agents';

export function AgentPage({ initial }: { initial: AgentDetail }) {
  const { detail, moreSessions } = useAgent(initial, true);
  const { agent, sessions, producers, producerCount, quarantine, parked, insights } = detail;
  const failures = insights.filter(({ isFailure }) => isFailure);
  const signals = insights.filter(({ isFailure }) => !isFailure);
  const [trouble, outage] = [troubleOf(agent.status), outageOf(agent.status)];
  const [limits, commands] = [limitsOf(agent.status), commandsOf(agent.status)];
  const ordered = [...sessions].sort((a, b) => b.lastEventAt - a.lastEventAt);
  return (
    <div className="space-y-9">
      <p className="flex flex-wrap gap-x-5 text-ink-3 text-xs">
        <span>
          <Name text={agent.kind ?? 'unknown kind'} />
        </span>
        <span>
          first seen <TimeOfDay at={agent.firstSeenAt} />
        </span>
        <span>
          last seen <Ago at={agent.lastSeenAt} />
        </span>
        <Link
          href={`/agents/${encodeURIComponent(agent.id)}/logs`}
          className="text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink"
        >
          Log
        </Link>
      </p>
      {outage !== null && <TroubleLine trouble={`Unreachable: ${outage.reason ?? 'no response'}.`} />}
      {trouble !== null && <TroubleLine trouble={trouble} />}
      {failures.length > 0 && (
        <Section
          title="Failures"
          id="failures"
          count={agent.insightCount > 0 ? agent.insightCount : undefined}
          // Once all are seen, count and button disappear together. The list follows when it is reloaded.
          action={agent.insightCount > 0 && <MarkAsSeen agentId={agent.id} insights={failures} />}
        >
          <FailureList agent={agent} insights={failures} sessions={sessions} />
        </Section>
      )}
      {parked.length > 0 && (
        <Section title={<Term of="unassigned records">Unassigned</Term>} id="parked" count={agent.parkedCount}>
          <ParkedList agent={agent} records={parked} sessions={ordered} />
        </Section>
      )}
      <Section title="Sessions" count={Math.max(agent.sessionCount, sessions.length)}>
        <List
          rows={ordered}
          count={agent.sessionCount}
          what="sessions"
          state={moreSessions}
          empty={<p className="text-ink-3">No sessions yet. They appear here with their first event.</p>}
        >
          {() => (
            <ul className="@container -mx-4">
              {ordered.map((session) => (
                <li key={session.id}>
                  <SessionRow session={session} current={false} />
                </li>
              ))}
            </ul>
          )}
        </List>
      </Section>
      <Section title={<Term of="runner">Runner</Term>}>
        <RunnerFacts agent={agent} />
        {commands.length > 0 && (
          <div className="mt-3">
            <CommandList commands={commands} />
          </div>
        )}
        {limits.length > 0 && (
          <>
            <h3 className="mt-4 mb-1.5 text-ink-3 text-xs">Limits</h3>
            <SentenceList sentences={limits} />
          </>
        )}
        <h3 className="mt-4 mb-1.5 text-ink-3 text-xs">Log level</h3>
        <LevelSwitch agent={agent} />
      </Section>
      <Section title="Delivery">
        <DeliveryLedger producers={producers} count={producerCount} />
      </Section>
      {signals.length > 0 && (
        <Section title="Signals">
          <InsightList insights={signals} sessions={sessions} />
        </Section>
      )}
      {agent.status !== null && (
        <Section title="Last status">
          <VerbatimText text={JSON.stringify(agent.status, null, 2)} label="status" className="text-ink-2" />
          {agent.statusAt !== null && (
            <p className="mt-1 text-2xs text-ink-3">
              sent <Ago at={agent.statusAt} />
            </p>
          )}
        </Section>
      )}
      {quarantine.length > 0 && (
        <Section title={<Term of="rejected records">Rejected records</Term>} count={agent.quarantinedCount}>
          <QuarantineList records={quarantine} total={agent.quarantinedCount} />
        </Section>
      )}
    </div>
  );
}

function Section(props: {
  title: ReactNode;
  id?: string;
  count?: number | undefined;
  action?: ReactNode;
  children: ReactNode;
}) {
  const { title, id, count, action, children } = props;
  return (
    <section id={id}>
      <div className="mb-2 flex items-baseline gap-4">
        <h2 className="flex items-baseline gap-1.5 font-medium text-ink-2 text-xs">
          {title}
          {count !== undefined && <span className="tabular font-normal text-ink-3">{count}</span>}
        </h2>
        {action}
      </div>
      {children}
    </section>
  );
}

const COLUMNS = ['Outbox', 'Verified', 'Sent twice', 'Gaps refused', 'Rejected', 'Lost', 'Clock', 'Last seen'];

/**
 * Delivery per outbox. Records are numbered without gaps, so the last number proves that all earlier records arrived.
 */
function DeliveryLedger({ producers, count }: { producers: readonly ProducerSummary[]; count: number }) {
  const omitted = count - producers.length;
  if (producers.length === 0) return <p className="text-ink-3">This agent has not delivered any records yet.</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls sideways must be reachable by keyboard
    <div className="overflow-x-auto" tabIndex={0}>
      <table className="tabular w-full min-w-[640px] text-xs">
        <thead className="text-left text-2xs text-ink-3">
          <tr className="border-line-strong border-b">
            {COLUMNS.map((name, index) => (
              <th
                key={name}
                scope="col"
                className={clsx('py-1.5 pr-4 font-normal last:pr-0', index > 1 && 'text-right')}
              >
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {producers.map((producer) => (
            <tr key={`${producer.id}:${producer.epoch}`} className="border-b align-baseline">
              <td
                className="max-w-[200px] truncate py-1.5 pr-4"
                title={`${nameText(producer.id)}, epoch ${producer.epoch}`}
              >
                <Name text={producer.id} />
              </td>
              <td className="whitespace-nowrap py-1.5 pr-4">
                <Verdict producer={producer} />
              </td>
              <Count value={producer.duplicates} />
              <Count value={producer.gaps} />
              <Count value={producer.rejected} alarming />
              <Count value={producer.lost} alarming />
              <td className="py-1.5 pr-4 text-right">
                {producer.clockSkewMs === null ? (
                  <span className="text-ink-3">in sync</span>
                ) : (
                  <span className="text-waiting">
                    {formatDuration(Math.abs(producer.clockSkewMs))} {producer.clockSkewMs > 0 ? 'ahead' : 'behind'}
                  </span>
                )}
              </td>
              <td className="py-1.5 text-right text-ink-3">
                <Ago at={producer.lastSeenAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {omitted > 0 && (
        <p className="py-1.5 text-ink-3 text-xs">{plural(omitted, 'older outbox', 'older outboxes')} not listed.</p>
      )}
    </div>
  );
}

function Verdict({ producer }: { producer: ProducerSummary }) {
  const last = `#${producer.lastSeq.toLocaleString('en')}`;
  if (producer.lost > 0) {
    return (
      <span className="flex items-baseline gap-1.5 text-waiting">
        <Glyph name="lost" className="relative top-[1.5px]" />
        {last}, {plural(producer.lost, 'record')} declared lost
      </span>
    );
  }
  return (
    <span className="flex items-baseline gap-1.5">
      <Glyph name="completed" className="relative top-[1.5px] text-working" />
      Complete to {last}
    </span>
  );
}

function Count({ value, alarming = false }: { value: number; alarming?: boolean }) {
  return (
    <td className={`py-1.5 pr-4 text-right ${value === 0 ? 'text-ink-3' : alarming ? 'text-waiting' : ''}`}>
      {value.toLocaleString('en')}
    </td>
  );
}

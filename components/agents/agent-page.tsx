'use client';

import { commandsOf, limitsOf, outageOf, troubleOf } from '@interlude/protocol/agent-status-view';
import type { AgentDetail, AgentSummary, ProducerSummary, SessionSummary } from '@interlude/protocol/read-models';
import { countedStateOf } from '@interlude/protocol/session-predicates';
import { AGENT_STATES } from '@interlude/protocol/session-states';
import { type ReactNode, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { List } from '@/components/live/list';
import { LevelSwitch } from '@/components/logs/level-switch';
import { SessionRow } from '@/components/sessions/session-row';
import { Ago } from '@/components/ui/clock';
import { RecordAgo } from '@/components/ui/day';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { LivenessProvider } from '@/components/ui/liveness';
import { Name } from '@/components/ui/name';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { SentenceList } from '@/components/ui/sentence-list';
import { Term } from '@/components/ui/term';
import { nameText } from '@/components/ui/verbatim';
import { VerbatimText } from '@/components/ui/verbatim-text';
import { type AgentWork, isDisconnected, sessionsInWords, workByAgent } from './board-agent';
import { AgentStateCell } from './board-columns';
import { FailureList, InsightList, MarkAsSeen } from './insight-list';
import { ParkedList, QuarantineList } from './parked-list';
import { CommandList, RunnerFacts } from './runner-facts';
import { TroubleLine } from './trouble-line';
import { useAgent } from './use-agents';

const stopCode = new CodeOnDemand(async () => (await import('./stop-all')).StopAll);

/** @param props.requests the agent's open requests */
export function AgentPage({ initial, requests }: { initial: AgentDetail; requests?: ReactNode }) {
  const { detail, moreSessions } = useAgent(initial, true);
  const { agent, sessions, producers, producerCount, quarantine, parked, insights } = detail;
  const failures = insights.filter(({ isFailure }) => isFailure);
  const signals = insights.filter(({ isFailure }) => !isFailure);
  const [trouble, outage] = [troubleOf(agent.status), outageOf(agent.status)];
  const [limits, commands] = [limitsOf(agent.status), commandsOf(agent.status)];
  const ordered = [...sessions].sort((a, b) => urgency(a) - urgency(b) || b.lastEventAt - a.lastEventAt);
  return (
    <LivenessProvider skewMs={agent.clockSkewMs}>
      <div className="@container">
        <div className="flex flex-wrap items-baseline gap-x-5 gap-y-1 pb-6 text-xs">
          <AgentStateLine agent={agent} work={workByAgent(sessions).get(agent.id)} />
          <span className="text-ink-3">
            last seen <Ago at={agent.lastSeenAt} inWords />
          </span>
          <Stop agent={agent} />
        </div>
        <div className="grid gap-x-12 gap-y-9 @7xl:grid-cols-[minmax(0,1fr)_340px]">
          <div className="min-w-0 space-y-9">
            {outage !== null && <TroubleLine trouble={`Unreachable: ${outage.reason ?? 'no response'}.`} />}
            {trouble !== null && <TroubleLine trouble={trouble} />}
            {requests}
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
                  <ul className="one-agent @container -mx-4">
                    {ordered.map((session) => (
                      <li key={session.id}>
                        <SessionRow session={session} current={false} />
                      </li>
                    ))}
                  </ul>
                )}
              </List>
            </Section>
            {signals.length > 0 && (
              <Section title="Signals">
                <InsightList insights={signals} sessions={sessions} />
              </Section>
            )}
            {quarantine.length > 0 && (
              <Section title={<Term of="rejected records">Rejected records</Term>} count={agent.quarantinedCount}>
                <QuarantineList records={quarantine} total={agent.quarantinedCount} />
              </Section>
            )}
          </div>
          <div className="min-w-0 space-y-9">
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
            {agent.status !== null && (
              <details>
                <summary className="-my-1 w-fit cursor-pointer py-1 font-medium text-ink-2 text-xs hover:text-ink">
                  Last status
                  {agent.statusAt !== null && (
                    <span className="ml-1.5 font-normal text-ink-3">
                      <RecordAgo at={agent.statusAt} />
                    </span>
                  )}
                </summary>
                <div className="mt-2">
                  <VerbatimText text={JSON.stringify(agent.status, null, 2)} label="status" className="text-ink-2" />
                </div>
              </details>
            )}
          </div>
        </div>
      </div>
    </LivenessProvider>
  );
}

/** Place of the session's state in the order of urgency. */
function urgency(session: SessionSummary): number {
  return AGENT_STATES.indexOf(countedStateOf(session));
}

/** Interrupts or ends the agent's sessions, after a dialog that names the effects. */
function Stop({ agent }: { agent: AgentSummary }) {
  const mayAct = useMayAct();
  /** Null until the reader first asks to stop. */
  const [isAsking, setAsking] = useState<boolean | null>(null);
  usePreload(stopCode);
  return (
    <>
      {mayAct && agent.sessionCount > agent.sessionStates.exited && (
        <button
          type="button"
          title="Interrupt turns or end sessions"
          aria-haspopup="dialog"
          aria-expanded={isAsking === true}
          onClick={() => setAsking(true)}
          className="hit -mb-1.5 ml-auto h-7 rounded border border-line-strong px-3 text-ink-2 hover:border-ink hover:text-ink"
        >
          Stop…
        </button>
      )}
      {isAsking !== null && (
        <div className="w-full">
          <OnDemand
            code={stopCode}
            name="The stop dialog"
            props={{ agents: [agent], areAll: false, isAsking, onAnswer: () => setAsking(false) }}
          />
        </div>
      )}
    </>
  );
}

/** The agent's state in the words of the board, and what is unusual about its connection. */
function AgentStateLine({ agent, work }: { agent: AgentSummary; work: AgentWork | undefined }) {
  return (
    <>
      <AgentStateCell agent={agent} work={work} />
      <span className="tabular text-ink-3">{sessionsInWords(agent)}</span>
      {isDisconnected(agent) && agent.connectedSince !== null && (
        <span className="text-waiting">
          Disconnected <Ago at={agent.connectedSince} inWords />
        </span>
      )}
      {agent.retiredAt !== null && <span className="text-ink-3">Retired</span>}
    </>
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

/**
 * Delivery per outbox. Records are numbered without gaps, so the last number proves that all earlier records arrived.
 */
function DeliveryLedger({ producers, count }: { producers: readonly ProducerSummary[]; count: number }) {
  const omitted = count - producers.length;
  if (producers.length === 0) return <p className="text-ink-3">This agent has not delivered any records yet.</p>;
  return (
    <>
      <ul className="tabular text-xs">
        {producers.map((producer) => (
          <li key={`${producer.id}:${producer.epoch}`} className="border-line border-b py-1.5 first:border-t">
            <p className="flex items-baseline gap-3">
              <span
                className="min-w-0 flex-1 [overflow-wrap:anywhere]"
                title={`${nameText(producer.id)}, epoch ${producer.epoch}`}
              >
                <Name text={producer.id} />
              </span>
              <Ago at={producer.lastSeenAt} inWords className="text-2xs text-ink-3" />
            </p>
            <Verdict producer={producer} />
          </li>
        ))}
      </ul>
      {omitted > 0 && (
        <p className="py-1.5 text-ink-3 text-xs">{plural(omitted, 'older outbox', 'older outboxes')} not listed.</p>
      )}
    </>
  );
}

/** Up to which record everything has arrived, and what went wrong. */
function Verdict({ producer }: { producer: ProducerSummary }) {
  const { lastSeq, lost, rejected, duplicates, gaps } = producer;
  const last = `#${lastSeq.toLocaleString('en')}`;
  const problems = [
    lost > 0 && `${plural(lost, 'record')} lost`,
    rejected > 0 && `${rejected.toLocaleString('en')} rejected`,
  ];
  const repairs = [
    duplicates > 0 && `${plural(duplicates, 'duplicate')} dropped`,
    gaps > 0 && `${plural(gaps, 'gap')} refused`,
  ];
  return (
    <p className="flex flex-wrap items-baseline gap-x-1.5 text-ink-3">
      <Glyph name={lost > 0 ? 'lost' : 'completed'} className="relative top-[1.5px]" />
      <span>{lost > 0 ? `Delivered to ${last}` : `Complete to ${last}`}</span>
      <span className="text-waiting">{problems.filter(Boolean).join(' · ')}</span>
      <span>{repairs.filter(Boolean).join(' · ')}</span>
    </p>
  );
}

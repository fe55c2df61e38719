'use client';

import type { EvidenceSource, Observations, StateRule } from '@interlude/protocol/agent-status';
import { limitsOf, modeAndModelOf } from '@interlude/protocol/agent-status-view';
import type { MissingRecords, ProducerSummary, SessionDelivery, SessionSummary } from '@interlude/protocol/read-models';
import { describeExit } from '@interlude/protocol/session-predicates';
import { withoutQuotes } from '@interlude/protocol/text';
import { useQuery } from '@tanstack/react-query';
import { clsx } from 'clsx';
import type { ReactNode, RefObject } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { useRunnerStatus } from '@/components/live/refusals';
import { Ago, useServerTime } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { Link } from '@/components/ui/link';
import { Name, Phrase, ToolLine } from '@/components/ui/name';
import { ButtonPopover } from '@/components/ui/popover';
import { SentenceList } from '@/components/ui/sentence-list';
import { Term } from '@/components/ui/term';
import { describeState } from './session-labels';

export function EvidencePopover(props: {
  session: SessionSummary;
  button: RefObject<HTMLElement | null>;
  onClose: () => void;
}) {
  const { session, button, onClose } = props;
  const ways = modeAndModelOf(useRunnerStatus());
  return (
    <ButtonPopover label="Why this state" button={button} onClose={onClose} isText>
      <div className="px-3 py-1.5 text-xs">
        <StateEvidence session={session} />
        {ways.length > 0 && (
          <p className="mt-2 text-ink-2 [overflow-wrap:anywhere]">
            {ways.map(({ name, text }) => (
              <span key={name} className="mr-4">
                <span className="text-ink-3">{name}</span> <Name text={text} />
              </span>
            ))}
          </p>
        )}
      </div>
    </ButtonPopover>
  );
}

/** The reason for a session's state, and each observation with its age. */
export function StateEvidence({ session }: { session: SessionSummary }) {
  const limits = limitsOf(useRunnerStatus());
  return (
    <>
      <StateReason session={session} />
      <ObservationTable session={session} />
      <h3 className="mt-2 text-2xs text-ink-3">
        <Term of="missing records">Delivery</Term>
      </h3>
      <DeliveryVerdict session={session} />
      {limits.length > 0 && (
        <>
          <h3 className="mt-2 mb-0.5 text-2xs text-ink-3">Limits</h3>
          <SentenceList sentences={limits} />
        </>
      )}
    </>
  );
}

/** `Working although it reported that it was done.` */
export function StateReason({ session }: { session: SessionSummary }) {
  return (
    <p>
      <span className="font-medium">{describeState(session)}</span>{' '}
      <span className="text-ink-2">{RULE_WORDS[session.evidence.rule]}</span>
    </p>
  );
}

export function ObservationTable({ session }: { session: SessionSummary }) {
  const { evidence, observations, away, request } = session;
  const startedAt = useServerTime(session.startedAt);
  return (
    <table className="mt-2 w-full text-left align-baseline">
      <caption className="sr-only">Observations</caption>
      <thead className="text-2xs text-ink-3">
        <tr>
          <th scope="col" className="pr-3 font-normal">
            Source
          </th>
          <th scope="col" className="w-full pr-3 font-normal">
            <Term of="evidence">Observation</Term>
          </th>
          <th scope="col" className="text-right font-normal">
            Age
          </th>
        </tr>
      </thead>
      <tbody>
        {away !== null && (
          <Row source="connection" decided={evidence.source} at={away.lastHeardAt}>
            {away.isUnreachable
              ? 'The runner can’t reach the agent'
              : away.isSilent
                ? 'The agent has sent no signal for too long'
                : 'The runner has disconnected'}
          </Row>
        )}
        {SOURCES.map((source) => {
          const observed = observations[source];
          if (observed === undefined) return null;
          const { observedAt, occurredAt = observedAt } = observed;
          const at = source === 'session' ? Math.min(startedAt, observedAt) : occurredAt;
          return (
            <Row key={source} source={source} decided={evidence.source} at={at}>
              {source === 'request' && request?.kind === 'permission' ? (
                <ToolLine {...request} />
              ) : (
                <Observed of={observations} source={source} />
              )}
            </Row>
          );
        })}
        <Row source="records" decided={null} at={session.lastHeardAt}>
          Received from the agent
        </Row>
      </tbody>
    </table>
  );
}

function Row(props: { source: string; decided: EvidenceSource | null; at: number; children: ReactNode }) {
  const { source, decided, at, children } = props;
  const isDecisive = source === decided;
  return (
    <tr className={clsx('align-baseline', isDecisive ? 'font-medium text-ink' : 'text-ink-2')}>
      <th scope="row" className={clsx('whitespace-nowrap py-0.5 pr-3', isDecisive ? 'font-medium' : 'font-normal')}>
        {SOURCE_WORDS[source] ?? source}
        {isDecisive && <span className="sr-only"> (decided)</span>}
      </th>
      <td className="wrap-anywhere py-0.5 pr-3">{children}</td>
      <td className="tabular whitespace-nowrap py-0.5 text-right text-ink-3">
        <Ago at={at} />
      </td>
    </tr>
  );
}

const SOURCES = ['process', 'request', 'message', 'report', 'turn', 'agent', 'task', 'session'] as const;

const SOURCE_WORDS: Record<string, string> = {
  connection: 'Connection',
  process: 'Process',
  request: 'Request',
  message: 'Message',
  report: 'Self-report',
  turn: 'Last turn',
  agent: 'Runner',
  task: 'Tasks',
  session: 'First event',
  records: 'Last event',
};

const ACTIVITY_WORDS: Record<NonNullable<Observations['agent']>['value'], string> = {
  running: 'working',
  still: 'idle',
  compacting: 'compacting',
  restarting: 'restarting',
};

const TURN_WORDS: Record<NonNullable<Observations['turn']>['value']['state'], string> = {
  running: 'Still open',
  finished: 'Finished',
  failed: 'Failed',
  interrupted: 'Interrupted',
};

function Observed({ of, source }: { of: Observations; source: keyof Observations }) {
  switch (source) {
    case 'process': {
      const how = of.process === undefined ? null : describeExit(of.process.value);
      return <Phrase text={how === null ? 'Ended' : `Ended, ${how}`} />;
    }
    case 'request':
      return <Phrase text={of.request?.value ?? ''} />;
    case 'message':
      return 'Sent, not delivered yet';
    case 'report': {
      const { report } = of;
      if (report === undefined) return null;
      const { state, summary, link } = report.value;
      return (
        <>
          Reported {state}
          {summary !== null && (
            <>
              , “<Phrase text={withoutQuotes(summary)} />”
            </>
          )}
          {link !== null && /^https?:/i.test(link) && (
            <>
              {' '}
              <a href={link} target="_blank" rel="noreferrer" className="underline underline-offset-2">
                <Name text={link} />
              </a>
            </>
          )}
          {report.isOutdated && ' (superseded by a newer message)'}
        </>
      );
    }
    case 'turn': {
      const { turn } = of;
      if (turn === undefined) return null;
      const { state, message, isSilent } = turn.value;
      return (
        <>
          {TURN_WORDS[state]}
          {isSilent && ' without output'}
          {message && (
            <>
              : <Phrase text={message} />
            </>
          )}
        </>
      );
    }
    case 'agent':
      return of.agent && `Reported the agent as ${ACTIVITY_WORDS[of.agent.value]}`;
    case 'task':
      return `${of.task?.value ?? 0} running`;
    case 'session':
      return 'The session began';
  }
}

/** Reasons, by rule. The other rules' observations say it all. */
const RULE_WORDS: Partial<Record<StateRule, string>> = {
  3: 'because it has stopped sending signals.',
  6: 'because the agent reported it and has not worked since.',
  7: 'because the agent reported it moments ago.',
  8: 'although it reported that it was done.',
  9: 'although it reported that it was idle.',
  10: 'after the end of its turn.',
  11: 'because the agent reported it and has not worked since.',
  12: 'because the agent reports it and was active until recently.',
  13: 'although it reported that it was working.',
  15: 'because it has reported no activity yet.',
  16: 'because no event or output has arrived for an unusually long time.',
};

/** Maximum number of losses listed; the agent's page lists all. */
const SHOWN = 5;

/** The delivery of a session's records: `Complete to #812, nothing missing`, or the missing ones. */
function DeliveryVerdict({ session }: { session: SessionSummary }) {
  const { data, error } = useQuery({
    // read again whenever the session's row changes
    queryKey: ['delivery', session.id, session.updatedPosition],
    queryFn: ({ signal }) => fetchJson<SessionDelivery>(`/sessions/${encodeURIComponent(session.id)}/delivery`, signal),
    placeholderData: (before) => before,
  });
  if (error !== null) return <p className="text-failed">{error.message}</p>;
  if (data === undefined) return <p className="text-ink-3">Loading delivery…</p>;
  const { producers, missing, lostCount, quarantinedCount, unnamedCount, waiting } = data;
  const isComplete = lostCount === 0 && quarantinedCount === 0;
  return (
    <>
      <p className="flex items-baseline gap-1.5">
        <Glyph
          name={isComplete && unnamedCount === 0 ? 'completed' : 'lost'}
          className={isComplete && unnamedCount === 0 ? 'relative top-[1.5px] text-working' : 'relative top-[1.5px]'}
        />
        <span>
          {completeTo(producers)}
          {isComplete
            ? unnamedCount === 0 && ', nothing missing'
            : `, ${missingText(lostCount, quarantinedCount)} missing`}
        </span>
      </p>
      {unnamedCount > 0 && (
        <p className="pl-[18px]">
          {plural(unnamedCount, 'rejected record')} from its {producers.length === 1 ? 'outbox' : 'outboxes'}{' '}
          {unnamedCount === 1 ? 'names' : 'name'} no session and may belong to this one (
          <Link
            prefetch={false}
            href={`/agents/${encodeURIComponent(session.agentId)}`}
            className="underline hover:text-ink"
          >
            show
          </Link>
          )
        </p>
      )}
      {waiting !== null && waiting.count > 0 && (
        <p className="pl-[18px] text-ink-3">
          {plural(waiting.count, 'record')} not sent yet (reported <Ago at={waiting.at} inWords />)
        </p>
      )}
      {missing.length > 0 && (
        <ul className="pl-[18px] text-ink-2">
          {missing.slice(0, SHOWN).map((one) => (
            <Missing key={one.position} missing={one} />
          ))}
        </ul>
      )}
      {missing.length > SHOWN && <p className="pl-[18px] text-ink-3">Earlier losses are in the transcript.</p>}
    </>
  );
}

/** `Complete to #812`, with one number per outbox. */
function completeTo(producers: readonly ProducerSummary[]): string {
  if (producers.length === 0) return 'No records delivered yet';
  return `Complete to ${producers.map(({ lastSeq }) => `#${lastSeq.toLocaleString('en')}`).join(', ')}`;
}

function missingText(lost: number, quarantined: number): string {
  const parts = [lost > 0 && `${plural(lost, 'record')} lost`, quarantined > 0 && `${quarantined} rejected`];
  return parts.filter(Boolean).join(' and ');
}

function Missing({ missing: { kind, at, count, seq, reason } }: { missing: MissingRecords }) {
  return (
    <li>
      {kind === 'lost' ? `${plural(count, 'record')} lost` : seq === null ? 'A record' : <Name text={`#${seq}`} />}
      {kind === 'quarantined' && ' rejected'} (<Ago at={at} inWords />
      ): <Phrase text={reason} />
    </li>
  );
}

'use client';

import { limitsOf, modeAndModelOf } from '@interlude/protocol/agent-limits';
import type { EvidenceSource, Observations, StateRule } from '@interlude/protocol/agent-status';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import type { ReactNode, RefObject } from 'react';
import { useRunnerStatus } from '@/components/live/refusals';
import { ButtonPopover } from '@/components/ui/button-popover';
import { Ago } from '@/components/ui/clock';
import { Name, Words } from '@/components/ui/name';
import { SentenceList } from '@/components/ui/sentence-list';
import { DeliveryVerdict } from './delivery-verdict';
import { describeState } from './session-words';

/** The rule that decided a session's state, and everything observed of it, each with its age. */
export function EvidencePopover(props: {
  session: SessionSummary;
  button: RefObject<HTMLElement | null>;
  onClose: () => void;
}) {
  const { session, button, onClose } = props;
  const { evidence, observations, away } = session;
  const status = useRunnerStatus();
  const [ways, limits] = [modeAndModelOf(status), limitsOf(status)];
  return (
    <ButtonPopover label="Why this state" button={button} onClose={onClose}>
      <div className="px-3 py-1.5 text-xs">
        <p>
          <span className="font-medium">{describeState(session)}</span>{' '}
          <span className="text-ink-2">{RULE_WORDS[evidence.rule]}</span>{' '}
          <span className="whitespace-nowrap text-2xs text-ink-3">(rule {evidence.rule})</span>
        </p>
        <table className="mt-2 w-full text-left align-baseline">
          <caption className="sr-only">What was observed</caption>
          <thead className="text-2xs text-ink-3">
            <tr>
              <th scope="col" className="pr-3 font-normal">
                Source
              </th>
              <th scope="col" className="w-full pr-3 font-normal">
                What it says
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
                  ? 'its runner can’t reach it'
                  : away.isSilent
                    ? 'nothing heard for too long'
                    : 'its runner has gone'}
              </Row>
            )}
            {SOURCES.map((source) => {
              const observed = observations[source];
              if (observed === undefined) return null;
              return (
                <Row key={source} source={source} decided={evidence.source} at={observed.observedAt}>
                  <Told of={observations} source={source} />
                </Row>
              );
            })}
            <Row source="last word" decided={null} at={session.lastHeardAt}>
              the agent last told something
            </Row>
          </tbody>
        </table>
        <h3 className="mt-2 text-2xs text-ink-3">Delivery</h3>
        <DeliveryVerdict session={session} />
        {ways.length > 0 && (
          <p className="mt-2 text-ink-2 [overflow-wrap:anywhere]">
            {ways.map(({ name, text }) => (
              <span key={name} className="mr-4">
                <span className="text-ink-3">{name}</span> <Name text={text} />
              </span>
            ))}
          </p>
        )}
        {limits.length > 0 && (
          <>
            <h3 className="mt-2 mb-0.5 text-2xs text-ink-3">What it can’t tell</h3>
            <SentenceList sentences={limits} />
          </>
        )}
      </div>
    </ButtonPopover>
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
  turn: 'Turn',
  agent: 'Runner',
  task: 'Tasks',
  session: 'Session',
  'last word': 'Last word',
};

function Told({ of, source }: { of: Observations; source: keyof Observations }) {
  switch (source) {
    case 'process': {
      const { code, signal, reason } = of.process?.value ?? { code: null, signal: null, reason: null };
      const how = [reason, code === null ? null : `exit code ${code}`, signal].filter((part) => part !== null);
      return (
        <>
          ended{how.length > 0 && ': '}
          <Words text={how.join(', ')} />
        </>
      );
    }
    case 'request':
      return <Words text={of.request?.value ?? ''} />;
    case 'message':
      return 'is on its way to the agent';
    case 'report': {
      const { report } = of;
      if (report === undefined) return null;
      const { state, summary, link } = report.value;
      return (
        <>
          {state}
          {summary !== null && (
            <>
              : <Words text={summary} />
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
          {report.isOutdated && ' (a message came after it)'}
        </>
      );
    }
    case 'turn': {
      const { turn } = of;
      if (turn === undefined) return null;
      const { state, message, isSilent } = turn.value;
      return (
        <>
          {state === 'running' ? 'is open' : state}
          {isSilent && ', without a word'}
          {message && (
            <>
              : <Words text={message} />
            </>
          )}
        </>
      );
    }
    case 'agent':
      return `sees it ${of.agent?.value}`;
    case 'task':
      return `${of.task?.value} running`;
    case 'session':
      return 'is known';
  }
}

/** Why each rule decides as it does. */
const RULE_WORDS: Record<StateRule, string> = {
  1: 'because its process has ended.',
  2: 'because it waits for an answer.',
  3: 'because nothing is heard of it any more.',
  4: 'because a message is newer than everything the agent told.',
  5: 'because the agent, or its last turn, has failed.',
  6: 'because the agent says so, and is still.',
  7: 'because the agent says so; it has not run on for long enough to count as resumed.',
  8: 'because it runs, though it had said that it was done.',
  9: 'because it runs, though it said that it was idle.',
  10: 'because it is still, and its tasks run.',
  11: 'because the agent says so, and is still.',
  12: 'because the agent says so, and was not still for long.',
  13: 'because it is still, though it said that it worked.',
  14: 'because that is what is seen of it.',
  15: 'because nothing has been observed yet of what it does.',
  16: 'because it works, and has told nothing for ten minutes.',
};

'use client';

import { modeAndModelOf, type NamedCommand } from '@interlude/protocol/agent-status-view';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { ChevronRight } from 'lucide';
import { Fragment, type ReactNode } from 'react';
import { Ago } from '@/components/ui/clock';
import { Moment } from '@/components/ui/day';
import { formatAgoLong, plural } from '@/components/ui/duration';
import { Icon } from '@/components/ui/icon';
import { Name, Words } from '@/components/ui/name';
import { Term } from '@/components/ui/term';
import { useDisclosure } from '@/components/ui/unfold';
import { nameText } from '@/components/ui/verbatim';
import { hostOf, isDisconnected, outboxFacts, providerOf, versionsOf } from './board-agent';

const MAX_OF_VERSION = 80;

/** The agent's runner: its connection, versions and outbox, as it reports them. */
export function RunnerFacts({ agent }: { agent: AgentSummary }) {
  const host = hostOf(agent);
  const outbox = outboxFacts(agent.status);
  const { name, version } = providerOf(agent);
  const versions = versionsOf(agent.status).filter(({ of }) => of !== 'provider');
  return (
    <dl className="tabular grid grid-cols-[minmax(96px,auto)_minmax(0,1fr)] gap-x-6 gap-y-1 text-xs">
      {agent.connection === 'away' && (
        <Fact name="Connection" alarming={isDisconnected(agent)}>
          <Connection agent={agent} />
        </Fact>
      )}
      <Fact name="First seen">
        <Moment at={agent.firstSeenAt} /> <Ago at={agent.firstSeenAt} inWords className="ml-2 text-2xs text-ink-3" />
      </Fact>
      {agent.clockSkewMs !== undefined && (
        <Fact name="Clock">
          {formatDuration(Math.abs(agent.clockSkewMs))} {agent.clockSkewMs > 0 ? 'ahead of' : 'behind'} the server’s.
          Ages shown here are corrected.
        </Fact>
      )}
      {name !== null && (
        <Fact name="Provider">
          <Name text={name} /> {version !== null && <Name text={version} max={MAX_OF_VERSION} />}
        </Fact>
      )}
      {host !== null && (
        <Fact name="Host">
          <span className="wrap-anywhere">
            <Name text={host} />
          </span>
        </Fact>
      )}
      {agent.runnerId !== null && (
        <Fact name="Runner">
          <span className="block truncate font-mono" title={nameText(agent.runnerId)}>
            <Name text={agent.runnerId} />
          </span>
        </Fact>
      )}
      {versions.length > 0 && (
        <Fact name="Versions">
          <span className="wrap-anywhere">
            {versions.map(({ of, text }, index) => (
              <Fragment key={of}>
                {index > 0 && ' · '}
                <Name text={text} max={MAX_OF_VERSION} />
              </Fragment>
            ))}
          </span>
        </Fact>
      )}
      {modeAndModelOf(agent.status).map(({ name, text }) => (
        <Fact key={name} name={name}>
          <span className="wrap-anywhere">
            <Name text={text} />
          </span>
        </Fact>
      ))}
      {agent.owedCount > 0 && (
        <Fact name="Pending replies (all sessions)">
          {agent.owedCount.toLocaleString('en')}
          {agent.overdueCount > 0 && `, ${agent.overdueCount} overdue`}
        </Fact>
      )}
      {outbox !== null && outbox.depth > 0 && (
        <Fact name={<Term of="outbox">Unsent records</Term>}>
          {outbox.depth.toLocaleString('en')}
          {outbox.oldestAgeMs !== null && `, oldest ${formatAgoLong(outbox.oldestAgeMs)}`}
        </Fact>
      )}
      {outbox !== null && outbox.poisoned > 0 && (
        <Fact name="Refused" alarming>
          {plural(outbox.poisoned, 'record')} kept on disk
        </Fact>
      )}
      {outbox !== null && outbox.lost > 0 && (
        <Fact name="Lost" alarming>
          {plural(outbox.lost, 'record')}
        </Fact>
      )}
    </dl>
  );
}

export function Fact({
  name,
  alarming = false,
  children,
}: {
  name: ReactNode;
  alarming?: boolean;
  children: ReactNode;
}) {
  return (
    <>
      <dt className="text-ink-3">{name}</dt>
      <dd className={clsx('min-w-0', alarming && 'text-waiting')}>{children}</dd>
    </>
  );
}

function Connection({ agent }: { agent: AgentSummary }) {
  if (agent.connectedSince === null) return 'No runner has connected yet.';
  return (
    <>
      Disconnected since <Moment at={agent.connectedSince} />{' '}
      <Ago at={agent.connectedSince} inWords className="ml-2 text-2xs text-ink-3" />
    </>
  );
}

export function CommandList({ commands }: { commands: readonly NamedCommand[] }) {
  const { open, id, button } = useDisclosure();
  return (
    <>
      <button type="button" {...button} className="-ml-0.5 flex items-center gap-1 text-ink-2 text-xs hover:text-ink">
        <Icon
          of={ChevronRight}
          size={12}
          aria-hidden="true"
          className={clsx('transition-transform', open && 'rotate-90')}
        />
        {plural(commands.length, 'command')}
      </button>
      {open && (
        <dl
          id={id}
          className="mt-1.5 grid grid-cols-[fit-content(40%)_minmax(0,1fr)] gap-x-6 gap-y-1 border-line border-l pl-4 text-xs"
        >
          {commands.map(({ name, description }) => (
            <div key={name} className="contents">
              <dt className="min-w-0 font-mono text-ink-2 [overflow-wrap:anywhere]">
                /<Name text={name} layout="tool" />
              </dt>
              <dd dir="auto" className="min-w-0 text-ink-3 [overflow-wrap:anywhere]">
                <Words text={description} />
              </dd>
            </div>
          ))}
        </dl>
      )}
    </>
  );
}

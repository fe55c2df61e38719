'use client';

import { API_ADDRESS } from '@interlude/protocol/version';
import type { ReactNode } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { Fact, RunnerFacts } from '@/components/agents/runner-facts';
import { ArrangeSession } from '@/components/sessions/arrange-popover';
import { StateEvidence } from '@/components/sessions/evidence-popover';
import { failuresInWords } from '@/components/sessions/session-labels';
import { Ago } from '@/components/ui/clock';
import { CopyButton } from '@/components/ui/copy-button';
import { LateReport, Moment } from '@/components/ui/day';
import { plural } from '@/components/ui/duration';
import { Link } from '@/components/ui/link';
import { Name } from '@/components/ui/name';
import { pageUrl, useNamedTasks, useSessionRows, useSessionScope } from './session-scope';

/** Everything known about the session apart from its content, and what people can change about it. */
export function SessionDetails() {
  const { publicUrl } = useSessionScope();
  const { session, agent } = useSessionRows();
  const { tasks, omitted } = useNamedTasks();
  const mayAct = useMayAct();
  const folder = agent?.status?.cwd;
  const path = `/agents/${encodeURIComponent(session.agentId)}`;
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <div className="session-column grid max-w-[1190px] gap-x-12 gap-y-8 py-5 xl:grid-cols-2 xl:items-start">
        <Part title="Session">
          <dl className="tabular grid grid-cols-[minmax(96px,auto)_minmax(0,1fr)] gap-x-6 gap-y-1 text-xs">
            <Fact name="ID">
              <span className="flex items-center gap-2">
                <code className="min-w-0 [overflow-wrap:anywhere]">
                  <Name text={session.id} />
                </code>
                <CopyButton label="Copy ID" text={() => session.id} />
              </span>
            </Fact>
            <Fact name="Agent">
              <Link href={path} className="hit underline underline-offset-2 [overflow-wrap:anywhere]">
                <Name text={session.agentId} />
              </Link>
            </Fact>
            {typeof folder === 'string' && (
              <Fact name="Folder">
                <code className="[overflow-wrap:anywhere]">
                  <Name text={folder} />
                </code>
              </Fact>
            )}
            <Fact name="Started">
              <Moment at={session.startedAt} />
            </Fact>
            <Fact name="Last event">
              <LateReport at={agent === null ? undefined : session.lastOccurredAt} reportedAt={session.lastEventAt}>
                <Moment at={session.lastEventAt} seconds />{' '}
                <Ago at={session.lastEventAt} inWords className="ml-2 text-ink-3" />
              </LateReport>
            </Fact>
            <Fact name="Turns">{session.turnCount.toLocaleString('en')}</Fact>
            <Fact name="Tasks">
              {(tasks.length + omitted).toLocaleString('en')}
              {session.runningTaskCount > 0 && `, ${session.runningTaskCount.toLocaleString('en')} running`}
            </Fact>
            <Fact name="Open requests">{session.pendingRequestCount.toLocaleString('en')}</Fact>
            <Fact name="Pending replies">
              {session.owedCount.toLocaleString('en')}
              {session.overdueCount > 0 && `, ${session.overdueCount.toLocaleString('en')} overdue`}
            </Fact>
            {session.insightCount > 0 && (
              <Fact name="Failures">
                <Link href={`${path}#failures`} className="text-failed underline underline-offset-2">
                  {failuresInWords(session)}
                </Link>
              </Fact>
            )}
            {session.lostCount + session.quarantinedCount > 0 && (
              <Fact name="Missing" alarming>
                {plural(session.lostCount, 'record')} lost, {session.quarantinedCount.toLocaleString('en')} rejected
              </Fact>
            )}
          </dl>
          <p className="mt-3 flex flex-wrap items-center gap-x-5 gap-y-2 text-xs">
            <CopyButton label="Copy link" icon="link" withLabel text={() => pageUrl(publicUrl, '')} />
            <a
              href={`${API_ADDRESS}/sessions/${encodeURIComponent(session.id)}`}
              target="_blank"
              rel="noopener"
              className="hit text-ink-3 underline underline-offset-2 hover:text-ink"
            >
              Open in the API
            </a>
          </p>
        </Part>
        {agent !== null && (
          <Part title="Runner">
            <RunnerFacts agent={agent} />
          </Part>
        )}
        <Part title="State">
          <div className="text-xs">
            <StateEvidence session={session} />
          </div>
        </Part>
        {mayAct && (
          <Part title="Manage">
            <div className="-mx-3">
              <ArrangeSession session={session} onDone={() => {}} />
            </div>
          </Part>
        )}
      </div>
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title} className="min-w-0">
      <h2 className="mb-2 font-medium text-md">{title}</h2>
      {children}
    </section>
  );
}

'use client';

import type { ParkedResponse } from '@interlude/protocol/commands';
import { fieldsOf, textOf, textsOf } from '@interlude/protocol/fields';
import type { AgentSummary, QuarantinedRecord, SessionSummary } from '@interlude/protocol/read-models';
import { useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { usePost } from '@/components/live/idempotent-post';
import { sessionTitle } from '@/components/sessions/session-labels';
import { SessionLink } from '@/components/sessions/session-link';
import { Ago } from '@/components/ui/clock';
import { ConfirmButton } from '@/components/ui/confirm-button';
import { plural } from '@/components/ui/duration';
import { Link } from '@/components/ui/link';
import { SettledButton } from '@/components/ui/misclick-guard';
import { Name, Phrase } from '@/components/ui/name';
import { nameText, quoted } from '@/components/ui/verbatim';
import { VerbatimText } from '@/components/ui/verbatim-text';

interface ParkedListProps {
  agent: Pick<AgentSummary, 'id' | 'parkedCount'>;
  records: readonly QuarantinedRecord[];
  /** The agent's sessions, newest event first. */
  sessions: readonly SessionSummary[];
}

/** Records of tasks whose session can't be determined, until an operator assigns or discards them. */
export function ParkedList({ agent, records, sessions }: ParkedListProps) {
  const mayAct = useMayAct();
  return (
    <>
      <p className="mb-1 max-w-prose text-ink-3 text-xs">
        Interlude doesn’t know which session started these tasks.{' '}
        {mayAct
          ? 'Assign each task to the session that started it, or discard it.'
          : 'An operator can assign each task to the session that started it, or discard it.'}
      </p>
      <ul>
        {groupParked(records).map((group) => (
          <Parked key={group.first.position} agentId={agent.id} group={group} sessions={sessions} />
        ))}
      </ul>
      {agent.parkedCount > records.length && (
        <p className="mt-2 text-ink-3 text-xs">
          Showing the oldest {records.length} of {plural(agent.parkedCount, 'record')}.
        </p>
      )}
    </>
  );
}

function Parked(props: { agentId: string; group: ParkedGroup; sessions: readonly SessionSummary[] }) {
  const { agentId, group, sessions } = props;
  const { first, records, taskId, summary } = group;
  const mayAct = useMayAct();
  const [state, post] = usePost<ParkedResponse>();
  const path = `/agents/${encodeURIComponent(agentId)}/parked/${first.position}`;
  const [chosen, setChosen] = useState('');
  // Once the agent's row changes, the list drops the group.
  const isBusy = state.kind === 'sending' || (state.kind === 'done' && state.response.left === 0);
  const name = `task ${quoted(taskId)}`;
  return (
    <li data-parked={first.position} className="border-line border-b py-2">
      <p className="flex flex-wrap items-baseline gap-x-3">
        <span className="wrap-anywhere font-mono text-waiting text-xs">
          <Name text={taskId} />
        </span>
        <span className="wrap-anywhere min-w-0 flex-1 text-ink-2 text-xs">
          <Phrase text={summary} max={400} />
        </span>
        <span className="tabular text-2xs text-ink-3">
          {plural(records.length, 'record')} · <Ago at={first.receivedAt} inWords />
        </span>
      </p>
      <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1.5 text-ink-3 text-xs">
        {first.sessionId !== null && (
          <span>
            from <SessionLink id={first.sessionId} />
          </span>
        )}
        {mayAct && (
          <>
            <span className="flex min-w-0 items-center gap-1.5">
              <select
                aria-label={`Session of ${name}`}
                value={chosen}
                disabled={isBusy}
                onChange={(event) => setChosen(event.target.value)}
                className="h-7 min-w-0 max-w-56 truncate rounded border border-line-strong bg-ground px-1.5 text-ink-2"
              >
                <option value="">Choose a session</option>
                {sessions.map((session) => (
                  <option key={session.id} value={session.id}>
                    {nameText(sessionTitle(session))} · {nameText(session.id)}
                  </option>
                ))}
              </select>
              <SettledButton
                of={first.position}
                disabled={isBusy || chosen === ''}
                onPress={() => post(`${path}/assign`, { sessionId: chosen })}
                className="h-7 shrink-0 rounded border border-line-strong px-2 text-ink hover:bg-raised aria-disabled:text-ink-3"
              >
                Assign<span className="sr-only"> {name}</span>
              </SettledButton>
            </span>
            <ConfirmButton
              of={first.position}
              disabled={isBusy}
              onPress={() => post(`${path}/discard`)}
              className="underline-offset-2 aria-disabled:no-underline"
              looks={['text-ink-2 hover:text-ink', 'font-medium text-ink aria-disabled:text-ink-3']}
            >
              {(isPressed) => (
                <>
                  {isPressed ? 'Press again to discard' : 'Discard'}
                  <span className="sr-only"> {name}</span>
                </>
              )}
            </ConfirmButton>
          </>
        )}
        <span aria-live="polite">
          {isBusy && 'Sending…'}
          {state.kind === 'failed' && <span className="text-failed">Failed: {state.reason}</span>}
        </span>
      </div>
      <details className="mt-1 text-xs">
        <summary className="w-fit cursor-pointer text-ink-3 hover:text-ink">
          Records<span className="sr-only"> of {name}</span>
        </summary>
        {records.map((record) => (
          <VerbatimText
            key={record.position}
            text={record.excerpt ?? JSON.stringify(record.record, null, 2)}
            label="record"
            className="mt-2 text-ink-2"
          />
        ))}
      </details>
    </li>
  );
}

/** Records of one task run from one session, assigned or discarded together. */
interface ParkedGroup {
  taskId: string;
  /** The oldest record, which identifies the group. */
  first: QuarantinedRecord;
  records: QuarantinedRecord[];
  /** The last description and status of the task. */
  summary: string;
}

/** @param records oldest first */
export function groupParked(records: readonly QuarantinedRecord[]): ParkedGroup[] {
  const groups = new Map<string, ParkedGroup>();
  for (const record of records) {
    const { taskId = '', taskRunId = null } = record.parked ?? {};
    const key = JSON.stringify([record.sessionId, taskId, taskRunId]);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { taskId, first: record, records: [record], summary: wordsOf(record) });
    else {
      known.records.push(record);
      known.summary = wordsOf(record) || known.summary;
    }
  }
  return [...groups.values()];
}

function wordsOf({ record }: QuarantinedRecord): string {
  const { event } = fieldsOf(record);
  const { name, value } = fieldsOf(event);
  const { description, status, summary } = fieldsOf(value);
  const what = typeof status === 'string' ? status : textOf(name)?.replace(/^task:/, '');
  return textsOf([what, description, summary]).join(' · ');
}

/**
 * Records that the server rejected, with the reason. Long records are cut.
 * @param total number of unsettled records
 */
export function QuarantineList({ records, total }: { records: readonly QuarantinedRecord[]; total: number }) {
  const unsettled = records.filter(({ parked }) => parked === null || parked.settledAt === null).length;
  return (
    <>
      <ul>
        {records.map((entry) => (
          <li key={entry.position} className="border-line border-b py-2">
            <details>
              <summary className="flex list-none flex-wrap items-baseline gap-x-3 [&::-webkit-details-marker]:hidden">
                <span className="font-mono text-waiting text-xs">
                  <Name text={entry.code} />
                </span>
                <span className="min-w-0 flex-1 text-ink-2 text-xs">
                  <Phrase text={entry.message} />
                </span>
                <span className="tabular text-2xs text-ink-3">
                  <Name text={entry.producerId} /> #{entry.seq} · <Ago at={entry.receivedAt} inWords />
                </span>
              </summary>
              <VerbatimText
                text={entry.excerpt ?? JSON.stringify(entry.record, null, 2)}
                label="record"
                className="mt-2 text-ink-2"
              />
              {entry.excerpt !== null && (
                <p className="text-ink-3 text-xs">Truncated from {plural(entry.size, 'byte')}.</p>
              )}
              {entry.parked !== null && entry.parked.settledAt !== null && (
                <p className="text-ink-2 text-xs">
                  {entry.parked.state === 'assigned' ? 'Assigned to ' : 'Discarded'}
                  {entry.parked.assignedSessionId !== null && <SessionLink id={entry.parked.assignedSessionId} />} by{' '}
                  {entry.parked.settledBy}, <Ago at={entry.parked.settledAt} inWords />
                  {entry.parked.reason !== null && (
                    <>
                      : <Phrase text={entry.parked.reason} max={2_000} />
                    </>
                  )}
                </p>
              )}
              {entry.sessionId !== null && (
                <Link
                  href={`/sessions/${encodeURIComponent(entry.sessionId)}`}
                  className="text-ink-3 text-xs underline hover:text-ink"
                >
                  Intended session
                </Link>
              )}
            </details>
          </li>
        ))}
      </ul>
      {total > unsettled && (
        <p className="mt-2 text-ink-3 text-xs">
          Showing the newest {unsettled} of {plural(total, 'record')}.
        </p>
      )}
    </>
  );
}

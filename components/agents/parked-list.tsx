'use client';

import type { ParkedAnswer } from '@interlude/protocol/commands';
import type { AgentSummary, QuarantinedRecord, SessionSummary } from '@interlude/protocol/read-models';
import { useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { usePost } from '@/components/live/idempotent-post';
import { SessionLink } from '@/components/sessions/session-link';
import { sessionTitle } from '@/components/sessions/session-words';
import { Ago } from '@/components/ui/clock';
import { ConfirmButton } from '@/components/ui/confirm-button';
import { plural } from '@/components/ui/duration';
import { SettledButton } from '@/components/ui/misclick-guard';
import { Name } from '@/components/ui/name';
import { nameText, quoted } from '@/components/ui/verbatim';
import { VerbatimText } from '@/components/ui/verbatim-text';
import { groupParked, type ParkedGroup } from './parked-groups';

interface ParkedListProps {
  agent: Pick<AgentSummary, 'id' | 'parkedCount'>;
  records: readonly QuarantinedRecord[];
  /** Of the agent, newest event first. */
  sessions: readonly SessionSummary[];
}

/** What was told of tasks of which nothing proves whose they are, until somebody says so. */
export function ParkedList({ agent, records, sessions }: ParkedListProps) {
  const mayAct = useMayAct();
  return (
    <>
      <p className="mb-1 max-w-prose text-ink-3 text-xs">
        Nothing proves to which session these tasks belong.{' '}
        {mayAct
          ? 'Assign each to the one that started it, or discard it.'
          : 'Somebody who may act assigns each to the one that started it, or discards it.'}
      </p>
      <ul>
        {groupParked(records).map((group) => (
          <Parked key={group.first.position} agentId={agent.id} group={group} sessions={sessions} />
        ))}
      </ul>
      {agent.parkedCount > records.length && (
        <p className="mt-2 text-ink-3 text-xs">
          The oldest {records.length} records of {agent.parkedCount.toLocaleString('en')}.
        </p>
      )}
    </>
  );
}

function Parked(props: { agentId: string; group: ParkedGroup; sessions: readonly SessionSummary[] }) {
  const { agentId, group, sessions } = props;
  const { first, records, taskId, says } = group;
  const mayAct = useMayAct();
  const [state, ask] = usePost<ParkedAnswer>();
  const path = `/agents/${encodeURIComponent(agentId)}/parked/${first.position}`;
  const [chosen, setChosen] = useState('');
  // The agent's row, which changes, takes off the list what was settled whole.
  const isBusy = state.kind === 'sending' || (state.kind === 'answered' && state.answer.left === 0);
  const name = `task ${quoted(taskId)}`;
  return (
    <li data-parked={first.position} className="border-line border-b py-2">
      <p className="flex flex-wrap items-baseline gap-x-3">
        <span className="wrap-anywhere font-mono text-waiting text-xs">
          <Name text={taskId} />
        </span>
        <span className="wrap-anywhere min-w-0 flex-1 text-ink-2 text-xs">
          <Name text={says} most={400} />
        </span>
        <span className="tabular text-2xs text-ink-3">
          {plural(records.length, 'record')} ·{' '}
          <Ago at={first.receivedAt} className="inline-block min-w-[4ch] text-right" />
        </span>
      </p>
      <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1.5 text-ink-3 text-xs">
        {first.sessionId !== null && (
          <span>
            told by <SessionLink id={first.sessionId} />
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
                <option value="">Which session?</option>
                {sessions.map((session) => (
                  <option key={session.id} value={session.id}>
                    {nameText(sessionTitle(session))} · {nameText(session.id)}
                  </option>
                ))}
              </select>
              <SettledButton
                of={first.position}
                disabled={isBusy || chosen === ''}
                onPress={() => ask(`${path}/assign`, { sessionId: chosen })}
                className="h-7 shrink-0 rounded border border-line-strong px-2 text-ink hover:bg-raised aria-disabled:text-ink-3"
              >
                Assign<span className="sr-only"> {name}</span>
              </SettledButton>
            </span>
            <ConfirmButton
              of={first.position}
              disabled={isBusy}
              onPress={() => ask(`${path}/discard`)}
              className="underline-offset-2 disabled:no-underline"
              looks={['text-ink-2 hover:text-ink', 'font-medium text-ink aria-disabled:text-ink-3']}
            >
              {(isPressed) => (
                <>
                  {isPressed ? 'Press again: discard' : 'Discard'}
                  <span className="sr-only"> {name}</span>
                </>
              )}
            </ConfirmButton>
          </>
        )}
        <span aria-live="polite">
          {isBusy && 'On its way…'}
          {state.kind === 'failed' && <span className="text-failed">Not done: {state.reason}</span>}
        </span>
      </div>
      <details className="mt-1 text-xs">
        <summary className="w-fit cursor-pointer text-ink-3 hover:text-ink">
          What was told<span className="sr-only"> of {name}</span>
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

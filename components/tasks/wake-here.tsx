'use client';

import { refusalOf } from '@interlude/protocol/agent-status-view';
import type { CommandResponse, Sending } from '@interlude/protocol/commands';
import type {
  AgentDetail,
  SessionDetail,
  Task,
  TaskDetail,
  TaskOutput,
  TaskOutputDetail,
} from '@interlude/protocol/read-models';
import { sendingTo } from '@interlude/protocol/sending';

import { useQuery } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { usePost } from '@/components/live/idempotent-post';
import { SendHere } from '@/components/sessions/send-here';
import { Phrase } from '@/components/ui/name';
import { isBoilerplate } from './task-words';

/**
 * Wakes an idle agent with the result of an ended task: through its runner if the runner can start a turn, otherwise
 * with an editable message.
 *
 * @param onSent called once the result is sent
 */
export function WakeHere(props: {
  agentId: string;
  sessionId: string;
  task: Pick<Task, 'id' | 'runId' | 'position'>;
  onSent: (sending: Sending) => void;
}) {
  const { agentId, sessionId, task, onSent } = props;
  const { data, error, refetch } = useQuery({
    queryKey: ['result', sessionId, task.position],
    queryFn: async ({ signal }) => {
      const session = `/sessions/${encodeURIComponent(sessionId)}`;
      const of = `${session}/tasks/${encodeURIComponent(task.id)}`;
      const run = `?position=${task.position}`;
      const [detail, output, here, agent] = await Promise.all([
        fetchJson<TaskDetail>(`${of}${run}`, signal),
        fetchJson<TaskOutputDetail>(`${of}/output${run}`, signal),
        fetchJson<SessionDetail>(session, signal),
        fetchJson<AgentDetail>(`/agents/${encodeURIComponent(agentId)}`, signal),
      ]);
      const { takes } = agent.agent.status ?? {};
      // Runners only keep the results of commands.
      const begins = Array.isArray(takes) && takes.includes('task.wake') && detail.task.kind !== 'subagent';
      return { text: resultText(detail.task, output.output), sending: deliveryOf(here, agent), begins };
    },
    gcTime: 0,
  });
  if (data === undefined) {
    return (
      <p role="status" className="py-2 text-2xs text-ink-3">
        {error === null ? 'Loading the result…' : `The result could not be loaded: ${error.message}`}{' '}
        {error !== null && (
          <button type="button" onClick={() => void refetch()} className="underline hover:text-ink">
            Try again
          </button>
        )}
      </p>
    );
  }
  const { text, sending, begins } = data;
  if (sending.kind === 'refused') {
    return (
      <p className="max-w-prose py-2 text-ink-2 text-xs">
        The agent can’t be woken. <Phrase text={sending.reason} />
      </p>
    );
  }
  if (begins) return <BeginTurn sessionId={sessionId} task={task} sending={sending} onSent={onSent} />;
  return (
    <SendHere
      sessionId={sessionId}
      label="Send the result to the agent:"
      text={text}
      results={[{ taskId: task.id, position: task.position }]}
      warning={sending.reason}
      onSent={onSent}
    />
  );
}

/** Asks the runner for a turn with the result. The turn names its cause and marks the output as untrusted. */
function BeginTurn(props: {
  sessionId: string;
  task: Pick<Task, 'id' | 'runId'>;
  sending: Sending;
  onSent: (sending: Sending) => void;
}) {
  const { sessionId, task, sending, onSent } = props;
  const [state, post] = usePost<CommandResponse>();
  const notifySent = useEffectEvent(onSent);
  const isAccepted = state.kind === 'done';
  useEffect(() => {
    if (isAccepted) notifySent({ kind: 'allowed', reason: null });
  }, [isAccepted]);
  if (isAccepted) return <p className="py-2 text-ink-2 text-xs">Requested a turn with the result.</p>;
  const path = `/sessions/${encodeURIComponent(sessionId)}/tasks/${encodeURIComponent(task.id)}/wake`;
  const isSending = state.kind === 'sending';
  return (
    <div className="flex max-w-prose flex-col gap-2 py-2 text-xs">
      <p className="text-ink-2">
        The runner will start a turn with the command, its outcome and the end of its output.
      </p>
      {sending.reason !== null && (
        <p className="text-waiting">
          <Phrase text={sending.reason} />
        </p>
      )}
      <p className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <button
          type="button"
          aria-disabled={isSending}
          onClick={() => {
            if (!isSending) void post(path, task.runId === null ? {} : { runId: task.runId });
          }}
          className="min-h-7 rounded bg-ink px-2.5 font-medium text-ground hover:bg-ink-2 aria-disabled:bg-raised aria-disabled:text-ink-3"
        >
          {isSending ? 'Requesting…' : 'Start a turn'}
        </button>
        <span role="alert" className="text-failed">
          {state.kind === 'failed' && `Could not wake the agent: ${state.reason}`}
        </span>
      </p>
    </div>
  );
}

/** The expected delivery of a message sent now. */
function deliveryOf({ session }: SessionDetail, { agent }: AgentDetail): Sending {
  const refusal = refusalOf(agent.status, 'message');
  if (refusal !== null) return { kind: 'refused', reason: `It doesn’t accept messages: ${refusal.reason}.` };
  return sendingTo(session, agent);
}

/** Longest excerpt from the end of the output, in UTF-16 units. */
const MAX_OUTPUT = 4_000;

/** The message with a task's result. */
function resultText(task: Task, output: TaskOutput | null): string {
  const { id, description, status, exitCode, summary, error, outputFile } = task;
  const name = description === id ? id : `“${description}” (${id})`;
  const code = exitCode === null || exitCode === 0 ? '' : `, exit code ${exitCode}`;
  const written = output?.parts.at(-1)?.text.trimEnd() ?? '';
  return [
    `The background task ${name} has ended: ${status}${code}.`,
    summary !== null && !isBoilerplate(task) ? summary : '',
    error ?? '',
    written === '' ? '' : `The end of its output:\n${endOf(written)}`,
    outputFile === null ? '' : `Full output: ${outputFile}`,
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** The end of a text, from a line break if possible. */
function endOf(text: string): string {
  if (text.length <= MAX_OUTPUT) return text;
  const end = text.slice(-MAX_OUTPUT);
  const line = end.indexOf('\n');
  return line === -1 ? end : end.slice(line + 1);
}

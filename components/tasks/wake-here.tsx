'use client';

import { useQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';
import { SendHere } from '@/components/sessions/send-here';
import { Name } from '@/components/ui/name';
import type { AgentDetail, SessionDetail, Task, TaskDetail, TaskOutputDetail } from '@/lib/protocol/read-models';
import { type Sending, sendingTo } from '@/lib/protocol/sending';
import { refusalOf } from '@/lib/protocol/takes';
import { resultText } from './result-text';

/**
 * Wakes an agent with the result of a task that ended while it was idle: a message, which stands here before it is sent.
 *
 * @param onSent told what becomes of it: with that the result is on its way
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
      const run = task.runId === null ? '' : `?runId=${encodeURIComponent(task.runId)}`;
      const [told, written, here, agent] = await Promise.all([
        fetchJson<TaskDetail>(`${of}${run}`, signal),
        fetchJson<TaskOutputDetail>(`${of}/output?position=${task.position}`, signal),
        fetchJson<SessionDetail>(session, signal),
        fetchJson<AgentDetail>(`/agents/${encodeURIComponent(agentId)}`, signal),
      ]);
      return { text: resultText(told.task, written.output), sending: fateOf(here, agent) };
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
  const { text, sending } = data;
  if (sending.kind === 'refused') {
    return (
      <p className="max-w-prose py-2 text-ink-2 text-xs">
        The agent can’t be woken. <Name text={sending.reason} />
      </p>
    );
  }
  return (
    <SendHere
      sessionId={sessionId}
      label="Send the result to the agent:"
      text={text}
      results={[{ taskId: task.id, ...(task.runId === null ? {} : { runId: task.runId }) }]}
      warning={sending.reason}
      onSent={onSent}
    />
  );
}

/** What becomes of a message that is sent now. */
function fateOf({ session }: SessionDetail, { agent }: AgentDetail): Sending {
  const refusal = refusalOf(agent.status, 'message');
  if (refusal !== null) return { kind: 'refused', reason: `It takes no messages: ${refusal.reason}.` };
  return sendingTo(session, agent);
}

import type { Sending } from './commands';
import type { AgentSummary, SessionSummary } from './read-models';

type Addressee = Pick<SessionSummary, 'state' | 'stateReason' | 'evidence' | 'observations' | 'wakeable'>;
type Listener = Pick<AgentSummary, 'connection' | 'connectedSince'>;

/** Whether a session can be written to, by its resolved state. The server refuses by it, and a page says it beforehand. */
export function sendingTo(session: Addressee, agent: Listener | null): Sending {
  const end = session.observations.process;
  const connectedSince = agent?.connection === 'connected' ? agent.connectedSince : null;
  // A runner that came after the end may have resumed the session; if not, it says so.
  if (end !== undefined && !(connectedSince !== null && connectedSince >= end.observedAt)) {
    const why = end.value.reason === null ? '' : ` (${end.value.reason})`;
    return {
      kind: 'refused',
      reason: `The agent of this session has ended${why}, so nobody can act on this. Start its runner again with --resume, or use another session.`,
    };
  }
  if (agent !== null && connectedSince === null) {
    const never = agent.connectedSince === null ? 'No runner listens for this agent' : 'The agent is away';
    return { kind: session.state === 'unknown' ? 'warned' : 'queued', reason: `${never}: the message waits.` };
  }
  if (session.state === 'unknown') {
    return { kind: 'warned', reason: 'Nothing is heard of this session: the message may reach nobody.' };
  }
  if (session.state === 'needs-input') {
    return { kind: 'queued', reason: 'It waits for an answer: the message is taken after that.' };
  }
  const stage = stageOf(session);
  return stage === 'still' && session.wakeable === false ? NOT_WAKEABLE : TAKEN[stage];
}

/** Above all an agent in somebody’s terminal. */
const NOT_WAKEABLE: Sending = {
  kind: 'warned',
  reason: 'It is idle and does not listen, so it refuses messages: type in its terminal, or send while a turn runs.',
};

type Stage = 'starting' | 'restarting' | 'compacting' | 'running' | 'still';

const TAKEN: Record<Stage, Sending> = {
  starting: { kind: 'queued', reason: 'It is starting: the message is taken once it runs.' },
  restarting: { kind: 'queued', reason: 'It is being restarted: the message is taken after that.' },
  compacting: { kind: 'queued', reason: 'It compacts its context: the message is taken after that.' },
  running: { kind: 'queued', reason: 'It works: the message is taken at its next step.' },
  still: { kind: 'allowed', reason: null },
};

/** What it does now, also behind a message that is on its way and a report that it is done. */
function stageOf({ state, evidence, observations: { agent, turn, report } }: Addressee): Stage {
  if (agent !== undefined) {
    if (agent.value !== 'still') return agent.value;
  } else if (turn?.value.state === 'running') return 'running';
  const isUnobserved = agent === undefined && turn === undefined;
  if (evidence.note !== 'delivering')
    return state === 'starting' ? 'starting' : state === 'working' ? 'running' : 'still';
  // It counts as working because something was written to it.
  if (!isUnobserved) return 'still';
  return report === undefined ? 'starting' : report.value.state === 'working' ? 'running' : 'still';
}

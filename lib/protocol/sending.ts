import type { Sending } from './commands';
import type { AgentSummary, SessionSummary } from './read-models';
import { listedStateOf } from './session-predicates';

type Addressee = Pick<SessionSummary, 'state' | 'stateReason' | 'evidence' | 'observations' | 'wakeable'>;
type Listener = Pick<AgentSummary, 'connection' | 'connectedSince'>;

/** The fate of a message to a session, by its resolved state. The server enforces it; pages show it beforehand. */
export function sendingTo(session: Addressee, agent: Listener | null): Sending {
  const end = session.observations.process;
  const connectedSince = agent?.connection === 'connected' ? agent.connectedSince : null;
  // A runner that connected after the end may have resumed the session.
  if (end !== undefined && !(connectedSince !== null && connectedSince >= end.observedAt)) {
    const why = end.value.reason === null ? '' : ` (${end.value.reason})`;
    return {
      kind: 'refused',
      reason: `The agent of this session has ended${why}. Start its runner again with --resume, or use another session.`,
    };
  }
  if (agent !== null && connectedSince === null) {
    const reason = 'Agent offline. Your message will be sent when it reconnects.';
    return { kind: session.state === 'unknown' ? 'warned' : 'queued', reason };
  }
  if (session.state === 'unknown') {
    return { kind: 'warned', reason: 'No signal from this session. Your message may never be read.' };
  }
  if (session.state === 'needs-input') {
    return { kind: 'queued', reason: 'Delivered after your answer.' };
  }
  const stage = stageOf(session);
  return stage === 'still' && session.wakeable === false ? NOT_WAKEABLE : TAKEN[stage];
}

/** True for a failed session that accepts its last message again. */
export function canRetry(session: SessionSummary, agent: Listener | null): boolean {
  return listedStateOf(session) === 'failed' && sendingTo(session, agent).kind !== 'refused';
}

/** Applies mostly to agents in a terminal. */
const NOT_WAKEABLE: Sending = {
  kind: 'warned',
  reason: 'The agent is idle and can’t receive messages. Type in its terminal, or send while a turn runs.',
};

type Stage = 'starting' | 'restarting' | 'compacting' | 'running' | 'still';

const TAKEN: Record<Stage, Sending> = {
  starting: { kind: 'queued', reason: 'Starting. Your message will be delivered once the agent runs.' },
  restarting: { kind: 'queued', reason: 'Restarting. Your message will be delivered afterwards.' },
  compacting: { kind: 'queued', reason: 'Compacting its context. Your message will be delivered afterwards.' },
  running: { kind: 'queued', reason: 'Working. Your message will be delivered at its next step.' },
  still: { kind: 'allowed', reason: null },
};

/** The current activity, ignoring messages on their way and reports of being done. */
function stageOf({ state, evidence, observations: { agent, turn, report } }: Addressee): Stage {
  if (agent !== undefined) {
    if (agent.value !== 'still') return agent.value;
  } else if (turn?.value.state === 'running') return 'running';
  const isUnobserved = agent === undefined && turn === undefined;
  if (evidence.note !== 'delivering')
    return state === 'starting' ? 'starting' : state === 'working' ? 'running' : 'still';
  // The state is `working` only because a message is on its way.
  if (!isUnobserved) return 'still';
  return report === undefined ? 'starting' : report.value.state === 'working' ? 'running' : 'still';
}

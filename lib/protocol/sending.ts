import type { AgentSummary, SessionSummary } from './read-models';

/** What becomes of a message that is sent now, and why, in a sentence. */
export type Sending =
  | { kind: 'allowed'; reason: null }
  /** It may reach nobody. */
  | { kind: 'warned'; reason: string }
  /** It waits until it can be taken. */
  | { kind: 'queued'; reason: string }
  /** Nobody can ever take it. */
  | { kind: 'refused'; reason: string };

type Addressee = Pick<SessionSummary, 'state' | 'stateReason' | 'evidence' | 'observations'>;
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
  if (session.state === 'starting')
    return { kind: 'queued', reason: 'It is starting: the message is taken once it runs.' };
  if (session.state !== 'working') return { kind: 'allowed', reason: null };
  const { note } = session.evidence;
  // It works because something was written to it.
  if (note === 'delivering') return { kind: 'allowed', reason: null };
  if (note === 'restarting')
    return { kind: 'queued', reason: 'It is being restarted: the message is taken after that.' };
  if (note === 'compacting')
    return { kind: 'queued', reason: 'It compacts its context: the message is taken after that.' };
  return { kind: 'queued', reason: 'It works: the message is taken at its next step.' };
}

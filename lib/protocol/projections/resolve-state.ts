import type { EvidenceSource, Observations, Observed, StateEvidence, StateNote, StateRule } from '../agent-state';
import { BELIEVED_MS, DELIVERING_MS, PROGRESS_MS, RESUMED_MS, STARTING_MS } from '../limits';
import type { SessionAway, SessionSummary } from '../read-models';
import { hasCrashed, lastFailure } from '../session-predicates';
import type { SessionState } from '../session-states';

/** All that a session's state follows from, besides the time. */
export interface StateFacts {
  observations: Observations;
  /** Nothing is heard of it any more. */
  away: SessionAway | null;
  /** When the agent last told something of it. */
  lastHeardAt: number;
}

export interface ResolvedState {
  state: SessionState;
  /** Why, in a few words, if the state alone does not tell. */
  reason: string | null;
  evidence: StateEvidence;
  /** When time alone may change it; null: never. */
  dueAt: number | null;
}

/** What a rule decides. */
interface Verdict {
  state: SessionState;
  source: EvidenceSource;
  /** By default when its source was observed. */
  observedAt?: number;
  reason?: string | null;
  note?: StateNote | undefined;
  last?: SessionState;
}

/** The facts as the rules ask for them. */
class View {
  readonly facts: StateFacts;
  readonly now: number;
  #dueAt: number | null = null;

  constructor(facts: StateFacts, now: number) {
    this.facts = facts;
    this.now = now;
  }

  get dueAt(): number | null {
    return this.#dueAt;
  }

  get seen(): Observations {
    return this.facts.observations;
  }

  /** Its report, if nobody has written since. */
  get report() {
    const { report } = this.seen;
    return report === undefined || report.isOutdated ? undefined : report;
  }

  get reported() {
    return this.report?.value.state ?? null;
  }

  /** What it does: what its runner saw last, else what its turns tell. */
  get activity(): { source: 'agent' | 'turn'; isRunning: boolean; since: number } | null {
    const { agent, turn } = this.seen;
    if (agent !== undefined)
      return { source: 'agent', isRunning: agent.value !== 'still', since: this.past(agent.observedAt) };
    if (turn === undefined) return null;
    return { source: 'turn', isRunning: turn.value.state === 'running', since: this.past(turn.observedAt) };
  }

  get isRunning(): boolean {
    return this.activity?.isRunning === true;
  }

  get isStill(): boolean {
    return this.activity?.isRunning === false;
  }

  /** Since when it does what it does. */
  get activeSince(): number {
    return this.activity?.since ?? this.now;
  }

  /** Whether this long has passed since then. If not, that is when the rules are to be asked again. */
  hasPassed(since: number, spanMs: number): boolean {
    const dueAt = this.past(since) + spanMs;
    if (dueAt <= this.now) return true;
    this.#dueAt = Math.min(this.#dueAt ?? dueAt, dueAt);
    return false;
  }

  /** No observation is newer than now: the clock was set back since. */
  past(at: number): number {
    return Math.min(at, this.now);
  }
}

type Rule = (view: View) => Verdict | null;

/**
 * The first rule that decides wins. A self-report that a person has written after counts as none.
 *
 * The sixteenth rule, about an agent that works without telling anything, only adds to what these decide.
 */
const RULES: Record<Exclude<StateRule, 16>, Rule> = {
  1: ({ seen, report }) => {
    const { process, turn } = seen;
    if (process === undefined) return null;
    const { code, signal, reason } = process.value;
    const isOfLastTurn = report !== undefined && (turn === undefined || report.turnId === turn.turnId);
    if (report?.value.state === 'complete' && isOfLastTurn && code === 0 && signal === null) {
      return { state: 'complete', source: 'report', reason: report.value.summary };
    }
    const how = signal !== null ? `killed by ${signal}` : code === null ? null : `exit code ${code}`;
    return { state: 'exited', source: 'process', reason: reason ?? how };
  },
  2: ({ seen: { request }, facts: { away } }) =>
    // given up, though some may be left that were only counted
    request === undefined || away?.last !== undefined
      ? null
      : { state: 'needs-input', source: 'request', reason: request.value },
  3: ({ facts, now }) => {
    const { away } = facts;
    if (away === null) return null;
    // as it was then
    const last =
      away.last ?? resolveState({ ...facts, away: null }, Math.min(Math.max(away.since, away.lastHeardAt), now)).state;
    const observedAt = away.lastHeardAt;
    return { state: 'unknown', source: 'connection', observedAt, last, reason: whyUnknown(away, last) };
  },
  4: (view) => {
    const { message } = view.seen;
    if (message === undefined || view.hasPassed(message.observedAt, DELIVERING_MS)) return null;
    return { state: 'working', source: 'message', note: 'delivering' };
  },
  5: ({ reported, report, seen: { turn }, isRunning }) => {
    if (isRunning) return null;
    if (reported === 'failure') return { state: 'failed', source: 'report', reason: report?.value.summary ?? null };
    if (turn?.value.state !== 'failed' || turn.value.isOutweighed) return null;
    return { state: 'failed', source: 'turn', reason: turn.value.message ?? null };
  },
  6: ({ reported, report, seen, isRunning }) => {
    if (reported !== 'complete' || isRunning) return null;
    return { state: 'complete', source: 'report', reason: report?.value.summary ?? null, note: silent(seen) };
  },
  7: (view) => {
    const { report, reported, activity } = view;
    if (report === undefined || activity === null || (reported !== 'failure' && reported !== 'complete')) return null;
    // A report is made in a turn, which goes on for a moment.
    if (view.hasPassed(Math.max(activity.since, report.observedAt), RESUMED_MS)) return null;
    return { state: reported === 'failure' ? 'failed' : 'complete', source: 'report', reason: report.value.summary };
  },
  8: ({ report, reported, activity, seen: { turn } }) => {
    if (report === undefined || activity === null || (reported !== 'failure' && reported !== 'complete')) return null;
    const isAnotherTurn = activity.source === 'turn' && turn?.turnId !== report.turnId;
    const hasResumed = isAnotherTurn || activity.since > report.observedAt;
    return { state: 'working', source: activity.source, note: hasResumed ? 'resumed' : undefined };
  },
  9: ({ reported, isRunning, activity }) =>
    reported === 'idle' && isRunning && activity !== null ? { state: 'working', source: activity.source } : null,
  10: (view) => {
    const { task } = view.seen;
    if (task === undefined || !view.isStill) return null;
    return { state: 'waiting-on-background', source: 'task' };
  },
  11: ({ reported, report, isRunning, seen }) =>
    reported === 'idle' && !isRunning
      ? { state: 'idle', source: 'report', reason: report?.value.summary ?? null, note: silent(seen) }
      : null,
  12: (view) => {
    const { report, reported, activity } = view;
    if (report === undefined || reported !== 'working') return null;
    const isBelieved =
      activity === null ||
      activity.isRunning ||
      !view.hasPassed(Math.max(activity.since, report.observedAt), BELIEVED_MS);
    return isBelieved ? { state: 'working', source: 'report', reason: report.value.summary } : null;
  },
  13: ({ reported, activity }) =>
    reported === 'working' && activity !== null ? { state: 'idle', source: activity.source, note: 'inferred' } : null,
  14: ({ activity, seen }) => {
    if (activity === null) return null;
    const { source } = activity;
    if (activity.isRunning) return { state: 'working', source };
    return { state: 'idle', source, note: silent(seen) ?? 'inferred' };
  },
  15: (view) => {
    const beganAt = view.seen.session.observedAt;
    const { lastHeardAt } = view.facts;
    if (!view.hasPassed(Math.max(beganAt, lastHeardAt), STARTING_MS)) return { state: 'starting', source: 'session' };
    const isHeard = lastHeardAt > beganAt;
    const reason = isHeard ? 'nothing that it tells says what it does' : 'nothing has been heard of it since it began';
    return { state: 'unknown', source: 'session', reason };
  },
};

const IN_ORDER = (Object.entries(RULES) as unknown as [string, Rule][]).map(
  ([rule, decide]) => [Number(rule) as StateRule, decide] as const,
);

/**
 * The state of a session at a time. The server and every page resolve it by this, so that they agree.
 *
 * @param now on the clock of `observedAt`, which is the server's
 */
export function resolveState(facts: StateFacts, now: number): ResolvedState {
  const view = new View(facts, now);
  for (const [rule, decide] of IN_ORDER) {
    const verdict = decide(view);
    if (verdict !== null) return resolved(view, rule, verdict);
  }
  throw new Error('the last rule always decides');
}

/** A session as it is at a time: the same object if nothing of its state has changed. */
export function stateAt(session: SessionSummary, now: number): SessionSummary {
  const { state, reason, evidence: found, dueAt } = resolveState(session, now);
  const isSame = JSON.stringify(found) === JSON.stringify(session.evidence);
  const evidence = isSame ? session.evidence : found;
  const failedAt = failedSince(session.observations, state);
  const isEntered =
    state !== session.state || evidence.turnId !== session.evidence.turnId || (failedAt ?? 0) > session.stateSince;
  // a failure is the same, whatever the session was meanwhile
  const stateSince = isEntered ? (failedAt ?? now) : session.stateSince;
  const next = { state, stateReason: reason, evidence, stateDueAt: dueAt, stateSince };
  const isUnchanged = isSame && reason === session.stateReason && dueAt === session.stateDueAt && !isEntered;
  return isUnchanged ? session : { ...session, ...next };
}

/** When the server learned of the last failure in which a session stands; null if it stands in none. */
function failedSince(observations: Observations, state: SessionState): number | null {
  if (state === 'failed') return lastFailure(observations);
  return hasCrashed({ state, observations }) ? (observations.process?.observedAt ?? null) : null;
}

function resolved(view: View, decidedBy: StateRule, verdict: Verdict): ResolvedState {
  const { observations, lastHeardAt } = view.facts;
  const observed = sourceOf(observations, verdict.source);
  const isAtWork = verdict.state === 'working' && verdict.note !== 'delivering';
  // what it does now may have begun long after its last word
  const toldAt = Math.max(lastHeardAt, observed?.observedAt ?? 0, view.isRunning ? view.activeSince : 0);
  const { silence, cpu } = observations;
  const busyAt = Math.max(toldAt, cpu?.observedAt ?? 0);
  const isLong = isAtWork && view.hasPassed(busyAt, silence?.value.limitMs ?? PROGRESS_MS);
  const isStuck = isLong && silence !== undefined;
  // the limit depends on other sessions of the kind: the server adds it when this is due
  const dueAt = isLong && !isStuck ? busyAt + PROGRESS_MS : view.dueAt;
  const observedAt = isStuck ? busyAt : (verdict.observedAt ?? observed?.observedAt ?? lastHeardAt);
  const instead = isAtWork ? aside(observations) : undefined;
  const note = isStuck ? 'no-progress' : (instead ?? verdict.note);
  const { report } = observations;
  const turnId = observed?.turnId ?? null;
  const evidence: StateEvidence = {
    rule: isStuck ? 16 : decidedBy,
    source: verdict.source,
    observedAt: view.past(observedAt),
    ...(turnId === null ? {} : { turnId }),
    ...(report === undefined ? {} : { report: told(report) }),
    ...(verdict.last === undefined ? {} : { last: verdict.last }),
    ...(note === undefined ? {} : { note }),
  };
  const reason = isStuck ? whyStuck(observations) : (verdict.reason ?? null);
  return { state: verdict.state, reason, evidence, dueAt };
}

function whyStuck({ silence, cpu }: Observations): string {
  const call = silence?.value.call;
  const seen = cpu === undefined ? 'no event or output' : 'no event, output or processor time';
  return call === undefined ? seen : `${seen} while ${call} runs`;
}

function sourceOf(observations: Observations, source: EvidenceSource): Observed<unknown> | undefined {
  return source === 'connection' ? undefined : observations[source];
}

function told({ value, observedAt, isOutdated }: NonNullable<Observations['report']>): StateEvidence['report'] {
  return { ...value, observedAt, ...(isOutdated ? { isOutdated } : {}) };
}

/** What a working agent does instead of its work. */
function aside({ agent }: Observations): StateNote | undefined {
  return agent?.value === 'compacting' || agent?.value === 'restarting' ? agent.value : undefined;
}

function silent({ turn }: Observations): StateNote | undefined {
  return turn?.value.isSilent ? 'no-output' : undefined;
}

const GONE: Partial<Record<SessionState, string>> = {
  working: 'in the middle of a turn',
  'needs-input': 'while it waited for an answer',
  'waiting-on-background': 'while it waited for its tasks',
};

function whyUnknown({ agentGoesOn, isSilent, isUnreachable, reason }: SessionAway, last: SessionState): string {
  if (isUnreachable) return reason === undefined ? 'the agent is unreachable' : `the agent is unreachable: ${reason}`;
  if (agentGoesOn) return 'its runner has gone and the agent goes on unseen: start the runner again';
  const when = GONE[last];
  const what = isSilent ? 'it has fallen silent' : 'its runner has gone';
  return when === undefined ? what : `${what} ${when}`;
}

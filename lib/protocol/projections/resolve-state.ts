import type { EvidenceSource, Observations, Observed, StateEvidence, StateNote, StateRule } from '../agent-status';
import { DELIVERING_MS, PROGRESS_MS, RESUMED_MS, STARTING_MS, WORK_REPORT_MS } from '../limits';
import type { SessionAway, SessionSummary } from '../read-models';
import { describeExit, hasCrashed, lastFailure } from '../session-predicates';
import type { SessionState } from '../session-states';

/** The inputs of a session's state, besides the time. */
export interface StateFacts {
  observations: Observations;
  /** Set while there is no signal from the session. */
  away: SessionAway | null;
  /** Last record from the agent, epoch milliseconds on the server's clock. */
  lastHeardAt: number;
}

interface ResolvedState {
  state: SessionState;
  /** A short explanation; null if the state explains itself. */
  reason: string | null;
  evidence: StateEvidence;
  /** Next time at which the state may change without an event, epoch milliseconds; null for never. */
  dueAt: number | null;
}

/** The decision of a rule. */
interface Verdict {
  state: SessionState;
  source: EvidenceSource;
  /** Defaults to the time of the source's observation. */
  observedAt?: number;
  reason?: string | null;
  note?: StateNote | undefined;
  last?: SessionState;
}

/** The facts, with the derived values that rules use. */
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

  /** The self-report, unless a person has written since. */
  get report() {
    const { report } = this.seen;
    return report === undefined || report.isOutdated ? undefined : report;
  }

  get reported() {
    return this.report?.value.state ?? null;
  }

  /** Current activity: the runner's last observation, else the turn's state. */
  get activity(): { source: 'agent' | 'turn'; isRunning: boolean; since: number } | null {
    const { agent, turn } = this.seen;
    if (agent !== undefined)
      return { source: 'agent', isRunning: agent.value !== 'still', since: this.clamped(agent.observedAt) };
    if (turn === undefined) return null;
    return { source: 'turn', isRunning: turn.value.state === 'running', since: this.clamped(turn.observedAt) };
  }

  get isRunning(): boolean {
    return this.activity?.isRunning === true;
  }

  get isStill(): boolean {
    return this.activity?.isRunning === false;
  }

  get activeSince(): number {
    return this.activity?.since ?? this.now;
  }

  /** True once a span has passed; until then, its end is the next time to resolve the state. */
  hasPassed(since: number, spanMs: number): boolean {
    const dueAt = this.clamped(since) + spanMs;
    if (dueAt <= this.now) return true;
    this.#dueAt = Math.min(this.#dueAt ?? dueAt, dueAt);
    return false;
  }

  /** Clamps a time to now, in case the clock was set back. */
  clamped(at: number): number {
    return Math.min(at, this.now);
  }
}

type Rule = (view: View) => Verdict | null;

/** The first rule with a verdict decides. Rule 16, for a working agent without any output, applies on top in `resolved`. */
const RULES: Record<Exclude<StateRule, 16>, Rule> = {
  1: ({ seen, report }) => {
    const { process, turn } = seen;
    if (process === undefined) return null;
    const { code, signal } = process.value;
    const isOfLastTurn = report !== undefined && (turn === undefined || report.turnId === turn.turnId);
    if (report?.value.state === 'complete' && isOfLastTurn && code === 0 && signal === null) {
      return { state: 'complete', source: 'report', reason: report.value.summary };
    }
    return { state: 'exited', source: 'process', reason: describeExit(process.value) };
  },
  2: ({ seen: { request }, facts: { away } }) =>
    // The server has resolved the open requests of an absent runner, although uncounted ones may be left.
    request === undefined || away?.last !== undefined
      ? null
      : { state: 'needs-input', source: 'request', reason: request.value },
  3: ({ facts, now }) => {
    const { away } = facts;
    if (away === null) return null;
    // The state at the last sign of life.
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
    return { state: 'complete', source: 'report', reason: report?.value.summary ?? null, note: silentNoteOf(seen) };
  },
  7: (view) => {
    const { report, reported, activity } = view;
    if (report === undefined || activity === null || (reported !== 'failure' && reported !== 'complete')) return null;
    // An agent reports within a turn, which continues for a moment.
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
      ? { state: 'idle', source: 'report', reason: report?.value.summary ?? null, note: silentNoteOf(seen) }
      : null,
  12: (view) => {
    const { report, reported, activity } = view;
    if (report === undefined || reported !== 'working') return null;
    const isCurrent =
      activity === null ||
      activity.isRunning ||
      !view.hasPassed(Math.max(activity.since, report.observedAt), WORK_REPORT_MS);
    return isCurrent ? { state: 'working', source: 'report', reason: report.value.summary } : null;
  },
  13: ({ reported, activity }) =>
    reported === 'working' && activity !== null ? { state: 'idle', source: activity.source, note: 'inferred' } : null,
  14: ({ activity, seen }) => {
    if (activity === null) return null;
    const { source } = activity;
    if (activity.isRunning) return { state: 'working', source };
    return { state: 'idle', source, note: silentNoteOf(seen) ?? 'inferred' };
  },
  15: (view) => {
    const startedAt = view.seen.session.observedAt;
    const { lastHeardAt } = view.facts;
    if (!view.hasPassed(Math.max(startedAt, lastHeardAt), STARTING_MS)) return { state: 'starting', source: 'session' };
    const hasReported = lastHeardAt > startedAt;
    const reason = hasReported ? 'it reports nothing about its activity' : 'no signal since it started';
    return { state: 'unknown', source: 'session', reason };
  },
};

const IN_ORDER = (Object.entries(RULES) as unknown as [string, Rule][]).map(
  ([rule, decide]) => [Number(rule) as StateRule, decide] as const,
);

/**
 * Resolves a session's state at a time, the same on the server and on every page.
 *
 * @param now epoch milliseconds on the server's clock
 */
export function resolveState(facts: StateFacts, now: number): ResolvedState {
  const view = new View(facts, now);
  for (const [rule, decide] of IN_ORDER) {
    const verdict = decide(view);
    if (verdict !== null) return resolved(view, rule, verdict);
  }
  throw new Error('the last rule always decides');
}

/** Updates a session's state to a time. Returns the same object if unchanged. */
export function stateAt(session: SessionSummary, now: number): SessionSummary {
  const { state, reason, evidence: found, dueAt } = resolveState(session, now);
  const isSame = JSON.stringify(found) === JSON.stringify(session.evidence);
  const evidence = isSame ? session.evidence : found;
  const failedAt = failedSince(session.observations, state);
  const isEntered =
    state !== session.state || evidence.turnId !== session.evidence.turnId || (failedAt ?? 0) > session.stateSince;
  // A failure keeps its time through other states.
  const stateSince = isEntered ? (failedAt ?? now) : session.stateSince;
  const isUnchanged = isSame && reason === session.stateReason && dueAt === session.stateDueAt && !isEntered;
  if (isUnchanged) return session;
  const next = { ...session, state, stateReason: reason, evidence, stateDueAt: dueAt, stateSince };
  if (!isEntered) return next;
  const { stateOccurredAt: _, ...entered } = next;
  const { observedAt, occurredAt } = sourceOf(session.observations, evidence.source) ?? {};
  return observedAt === stateSince && occurredAt !== undefined ? { ...entered, stateOccurredAt: occurredAt } : entered;
}

/** Time of the current failure, epoch milliseconds; null unless failed or crashed. */
function failedSince(observations: Observations, state: SessionState): number | null {
  if (state === 'failed') return lastFailure(observations);
  return hasCrashed({ state, observations }) ? (observations.process?.observedAt ?? null) : null;
}

function resolved(view: View, decidedBy: StateRule, verdict: Verdict): ResolvedState {
  const { observations, lastHeardAt } = view.facts;
  const observed = sourceOf(observations, verdict.source);
  const isAtWork = verdict.state === 'working' && verdict.note !== 'delivering';
  // The current activity may have started long after the last record.
  const activeAt = Math.max(lastHeardAt, observed?.observedAt ?? 0, view.isRunning ? view.activeSince : 0);
  const { silence, cpu } = observations;
  const busyAt = Math.max(activeAt, cpu?.observedAt ?? 0);
  const isLong = isAtWork && view.hasPassed(busyAt, silence?.value.limitMs ?? PROGRESS_MS);
  const isStuck = isLong && silence !== undefined;
  // The limit depends on other sessions of this kind, so the server adds it when due.
  const dueAt = isLong && !isStuck ? busyAt + PROGRESS_MS : view.dueAt;
  const observedAt = isStuck ? busyAt : (verdict.observedAt ?? observed?.observedAt ?? lastHeardAt);
  const runnerNote = isAtWork ? runnerNoteOf(observations) : undefined;
  const note = isStuck ? 'no-progress' : (runnerNote ?? verdict.note);
  const { report } = observations;
  const turnId = observed?.turnId ?? null;
  const evidence: StateEvidence = {
    rule: isStuck ? 16 : decidedBy,
    source: verdict.source,
    observedAt: view.clamped(observedAt),
    ...(turnId === null ? {} : { turnId }),
    ...(report === undefined ? {} : { report: reportEvidence(report) }),
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

function reportEvidence({
  value,
  observedAt,
  isOutdated,
}: NonNullable<Observations['report']>): StateEvidence['report'] {
  return { ...value, observedAt, ...(isOutdated ? { isOutdated } : {}) };
}

/** The note of a working agent whose runner reports that it compacts or restarts. */
function runnerNoteOf({ agent }: Observations): StateNote | undefined {
  return agent?.value === 'compacting' || agent?.value === 'restarting' ? agent.value : undefined;
}

function silentNoteOf({ turn }: Observations): StateNote | undefined {
  return turn?.value.isSilent ? 'no-output' : undefined;
}

const ACTIVITY_TEXTS: Partial<Record<SessionState, string>> = {
  working: 'in the middle of a turn',
  'needs-input': 'while it waited for an answer',
  'waiting-on-background': 'while it waited for its tasks',
};

function whyUnknown({ agentGoesOn, isSilent, isUnreachable, reason }: SessionAway, last: SessionState): string {
  if (isUnreachable) return reason === undefined ? 'the agent is unreachable' : `the agent is unreachable: ${reason}`;
  if (agentGoesOn) return 'its runner has gone and the agent continues unseen: start the runner again';
  const when = ACTIVITY_TEXTS[last];
  const change = isSilent ? 'it has fallen silent' : 'its runner has gone';
  return when === undefined ? change : `${change} ${when}`;
}

import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { AgentStatus } from '@interlude/protocol/agent-status';
import { endsOf, isNothing, NOTHING_OPEN, type OpenWork, workAfter } from '@interlude/protocol/lifecycle/open-session';
import type { RecordedLine, RecordingReader } from '@interlude/runner/adapters/recordings';
import { RECORDED_KINDS } from '@interlude/runner/adapters/recordings';
import type { EmittedEvent, WireEnd } from '@interlude/runner/adapters/wire';
import { AgentWatch } from '@interlude/runner/host/agent-reachability';
import { RestartPolicy } from '@interlude/runner/host/agent-supervisor';
import type { SessionFacts } from '@interlude/runner/host/source';
import { REPORT_EVERY_MS, ReportSelector, statusRecord } from '@interlude/runner/host/status-report';
import type { OutgoingRecord } from '@interlude/runner/outbox/outbox';
import { busyLineCounts, type KindName, LIFE_KINDS, type LifeKind, linesOf, terminalLife } from './life-kinds';

export const DEATHS = ['agent', 'bridge', 'runner', 'agent and runner', 'server', 'runner and server'] as const;
/** Processes named together die at the same moment. */
export type Death = (typeof DEATHS)[number];

export interface LifePlan {
  kind: KindName;
  recording: number;
  /** Part of the recording to play, from 0 to 1. */
  part: number;
  /** Stops at a point where the agent is busy. */
  isAtWork: boolean;
  death: Death;
  /** Milliseconds after the world starts. Server deaths follow the world's schedule. */
  diesAtMs: number;
  /** Milliseconds between the last line and the death. */
  quietMs: number;
  /** The machine is lost or the process hangs: connections stay open. */
  isSilent: boolean;
  /** Number of unsent records when the runner died. */
  unsent: number;
  /** Milliseconds from the death to the next runner; null: no next runner. */
  takeOverMs: number | null;
  /** Number of agent processes that die in quick succession. */
  crashes: number;
  /** Milliseconds until a poll of a dead address fails. */
  askMs: number;
  /** Milliseconds from the death to a user message in its first session; null: no message. */
  writtenAfterMs: number | null;
  /** Phase of the runner's timers, and random seed. */
  phase: number;
}

const LOOK_MS = 5_000;
const SOON_MS = 100;
/** Milliseconds that a restarted agent process runs before it dies again. */
const CRASH_MS = 300;

/** The runner's process. */
export interface SimulatedRunner {
  id: string;
  startedAt: number;
}

/**
 * Simulates an agent and its runner until and after a death. The kind's adapter reads a recording, and the runner
 * host's real parts turn its events into outbox records in the host's order.
 */
export class SimulatedLife {
  readonly agentId: string;
  readonly plan: LifePlan;
  readonly kind: LifeKind;
  /** Null while no runner is alive. */
  runner: SimulatedRunner | null = null;
  /** Time since which no process can be working; null while one may. */
  deadSince: number | null = null;
  /** A new process has replaced the dead one and receives its unanswered messages. */
  isStartedAgain = false;
  /** Something was open at the death. */
  wasAtWork = false;
  /** A server accepts its records. */
  canSend = true;
  readonly sessionIds = new Set<string>();
  readonly #beganAt: number;
  readonly #diesAt: number;
  readonly #sessions = new Map<string, string>();
  readonly #open = new Map<string, OpenWork>();
  readonly #restarts = new RestartPolicy();
  #reader: RecordingReader | null = null;
  #reports = new ReportSelector();
  #watch: AgentWatch | null = null;
  #process: SessionFacts['process'];
  #agenda: { at: number; act: (at: number) => void | Promise<void> }[] = [];
  #unsent: OutgoingRecord[] = [];
  /** Records in a dead runner's outbox. */
  #left: OutgoingRecord[] = [];
  #isAgentDead = false;
  #isReportDue = false;
  #now: number;
  #runs = 0;

  constructor(agentId: string, plan: LifePlan, beganAt: number, diesAt: number) {
    this.agentId = agentId;
    this.plan = plan;
    this.kind = LIFE_KINDS[plan.kind];
    this.#beganAt = beganAt;
    this.#diesAt = diesAt;
    this.#now = beganAt;
    if (this.kind.watch === 'child') this.#process = { state: 'running', pid: 4_000_000, exitCode: null };
  }

  /** Schedules everything up to the death. */
  async begin(): Promise<void> {
    this.#at(this.#beganAt, (at) => this.#runnerStarts(at));
    const lastAt = this.#diesAt - this.plan.quietMs;
    for (const { ms, read } of await this.#lines()) {
      this.#at(Math.max(this.#beganAt + 1, lastAt + ms), (at) => this.#emit(read(at)));
    }
    this.#at(this.#diesAt, (at) => this.#dies(at));
  }

  /** Advances to this time. */
  async advance(to: number): Promise<void> {
    for (let rounds = 0; rounds < 100_000; rounds += 1) {
      const next = this.#agenda[0];
      const dueAt = this.#reader?.dueAt ?? null;
      if (dueAt !== null && dueAt <= Math.min(to, next?.at ?? to)) {
        this.#now = Math.max(this.#now, dueAt);
        this.#emit(this.#reader?.elapsed(dueAt) ?? []);
        continue;
      }
      if (next === undefined || next.at > to) return;
      this.#agenda.shift();
      this.#now = next.at;
      await next.act(next.at);
    }
    throw new Error(`${this.agentId} makes no progress`);
  }

  /** Removes and returns unsent records. */
  takeUnsent(): OutgoingRecord[] {
    const records = this.#unsent;
    this.#unsent = [];
    return records;
  }

  /** The lines to play, each with its milliseconds before the end. */
  async #lines(): Promise<{ ms: number; read: (now: number) => EmittedEvent[] }[]> {
    const { recording, part, isAtWork, kind } = this.plan;
    if (kind === 'terminal') {
      return (await terminalLife(recording, part, this.plan.quietMs)).lines.map(({ ms, events }) => ({
        ms,
        read: (now) => this.#emittedFrom(events, now),
      }));
    }
    const { adapter, recordings } = this.kind;
    const name = recordings[recording % recordings.length] ?? '';
    const lines = linesOf(adapter, name);
    const ends = isAtWork ? busyLineCounts(adapter, name) : lines.map((_, index) => index + 1);
    const lived = lines.slice(0, ends[Math.ceil(ends.length * part) - 1]);
    const reader = RECORDED_KINDS[adapter]?.newReader({
      newRunId: () => `${this.agentId}-r${++this.#runs}`,
      sessionOf: (nativeId) => this.#session(nativeId),
    });
    if (reader === undefined) throw new Error(`unknown adapter ${adapter}`);
    this.#reader = reader;
    const lastAt = lived.at(-1)?.at ?? 0;
    return lived.map((line: RecordedLine) => ({ ms: line.at - lastAt, read: (now) => reader.read(line, now) }));
  }

  /** The dashboard's session id for a native id. */
  #session(nativeId: string): string {
    const known = this.#sessions.get(nativeId) ?? `${this.agentId}-s${this.#sessions.size + 1}`;
    this.#sessions.set(nativeId, known);
    this.sessionIds.add(known);
    return known;
  }

  #at(at: number, act: (at: number) => void | Promise<void>): void {
    const before = this.#agenda.findIndex((other) => other.at > at);
    this.#agenda.splice(before < 0 ? this.#agenda.length : before, 0, { at, act });
  }

  async #runnerStarts(at: number): Promise<void> {
    const { watch } = this.kind;
    if (watch !== 'promise') this.runner = { id: `${this.agentId}-runner-${at}`, startedAt: at };
    this.#reports = new ReportSelector();
    const started = this.runner;
    const isGone = () => this.runner !== started || (started === null && this.#isAgentDead);
    const clock = { now: at };
    this.#watch = watch === 'address' ? this.#watched(clock, isGone) : null;
    if (this.#open.size > 0) await this.#watch?.probe();
    this.#report(at);
    const reports = (then: number): void => {
      if (isGone()) return;
      this.#report(then);
      this.#at(then + REPORT_EVERY_MS, reports);
    };
    this.#at(at + REPORT_EVERY_MS, reports);
    const poll = (askedAt: number): void => {
      this.#at(askedAt + this.#askMs, async (answeredAt) => {
        if (isGone()) return;
        clock.now = askedAt;
        await this.#watch?.probe();
        this.#at(answeredAt + LOOK_MS, poll);
      });
    };
    if (this.#watch !== null) this.#at(at + (this.plan.phase % LOOK_MS), poll);
  }

  /** Milliseconds until the address responds or times out. */
  get #askMs(): number {
    return this.#isAgentDead && this.kind.watch === 'address' ? this.plan.askMs : 0;
  }

  /** @param clock of the watch: a poll starts before it completes */
  #watched(clock: { now: number }, isGone: () => boolean): AgentWatch {
    return new AgentWatch(null, {
      reach: async () => {
        clock.now = this.#now;
        return this.#isAgentDead ? 'no answer at http://127.0.0.1:8000/: ECONNREFUSED' : null;
      },
      close: async (reason) => {
        if (!isGone()) this.#emit(this.#ended({ reason, goesOn: 'It is tried again by itself.' }));
      },
      openWork: () => this.#open,
      store: async () => {},
      report: async () => this.#report(this.#now),
      emit: (sessionId, events) => this.#emit(events.map((one) => ({ sessionId, ...one }))),
      log: () => {},
      print: () => {},
      now: () => clock.now,
    });
  }

  #ended(end: WireEnd): EmittedEvent[] {
    return this.#reader?.ended(end, this.#now) ?? [];
  }

  /** Events with which the next runner closes what its predecessor left open. */
  #ends(): EmittedEvent[] {
    return [...this.#open].flatMap(([sessionId, open]) =>
      endsOf(open, sessionId, this.#now).map((one) => ({ sessionId, ...one })),
    );
  }

  #dies(at: number): void {
    const { death } = this.plan;
    this.wasAtWork = this.#open.size > 0;
    if (death === 'server') return;
    this.deadSince = at;
    const { watch } = this.kind;
    this.#isAgentDead = watch === 'promise' || (death !== 'runner' && death !== 'runner and server');
    if (watch === 'promise' || death.includes('runner')) this.#runnerDies(at);
    else if (watch === 'child') this.#childExits(at, 1);
    else if (watch === 'process') this.#at(at + LOOK_MS, (now) => this.#terminalIsGone(now));
  }

  /** The mirror reports the end. */
  async #terminalIsGone(at: number): Promise<void> {
    const { recording, part, quietMs } = this.plan;
    for (const { ms, events } of (await terminalLife(recording, part, quietMs)).ends) {
      this.#at(at + ms, (now) => this.#emit(this.#emittedFrom(events, now)));
    }
  }

  #emittedFrom(events: readonly AgUiEvent[], occurredAt: number): EmittedEvent[] {
    return events.map((event) => ({ sessionId: this.#session(''), occurredAt, event }));
  }

  #runnerDies(at: number): void {
    const { unsent, takeOverMs } = this.plan;
    this.runner = null;
    this.#reader = null;
    this.#watch = null;
    this.#left = this.#unsent.splice(this.canSend ? Math.max(0, this.#unsent.length - unsent) : 0);
    if (takeOverMs === null || this.kind.watch === 'promise') return;
    // its first report waits for the agent's response
    this.#at(at + takeOverMs + this.#askMs, (now) => this.#takenOver(now));
  }

  /** The next runner continues the outbox. */
  async #takenOver(at: number): Promise<void> {
    this.isStartedAgain = true;
    this.#unsent.push(...this.#left.splice(0));
    // A child died with its runner, so the next runner closes what it left open.
    if (this.kind.watch === 'child') {
      this.#process = { state: 'starting', pid: null, exitCode: null };
      this.#emit(this.#ends());
      this.#at(at + SOON_MS, (now) => {
        this.#process = { state: 'running', pid: 4_000_001, exitCode: null };
        this.#reportSoon(now);
      });
    } else if (!this.#isAgentDead) this.deadSince = null;
    else if (this.kind.watch === 'process') this.#at(at + SOON_MS, (now) => this.#terminalIsGone(now));
    await this.#runnerStarts(at);
  }

  /** Handles the exit of an agent process, for the nth time. */
  #childExits(at: number, times: number): void {
    const exit = { exitCode: null, signal: 'SIGKILL' };
    const reason = 'terminated by signal SIGKILL';
    const next = this.#restarts.exited(times === 1 ? this.#beganAt : at - CRASH_MS, at);
    this.#process = { state: next.kind === 'give-up' ? 'exited' : 'restarting', pid: null, ...exit };
    if (next.kind === 'give-up') {
      this.#emit(this.#ended({ reason: `the agent ended ${next.exits} times`, ...exit }));
      this.#report(at);
      this.runner = null;
      return;
    }
    this.#emit(this.#ended({ reason, ...exit, goesOn: `It is started again in ${next.waitMs / 1_000} s.` }));
    this.#reportSoon(at);
    this.#at(at + next.waitMs, (then) => {
      this.#process = { state: 'running', pid: 4_000_000 + times, exitCode: null };
      this.isStartedAgain = true;
      this.#reportSoon(then);
      if (times < this.plan.crashes) this.#at(then + CRASH_MS, (again) => this.#childExits(again, times + 1));
    });
  }

  #emit(emitted: readonly EmittedEvent[]): void {
    for (const one of emitted) {
      const { sessionId, event } = one;
      const before = this.#open.get(sessionId) ?? NOTHING_OPEN;
      const open = workAfter(before, [one]);
      if (isNothing(open)) this.#open.delete(sessionId);
      else this.#open.set(sessionId, open);
      this.sessionIds.add(sessionId);
      if (open !== before) this.#reportSoon(this.#now);
      this.#unsent.push({ kind: 'event', agentId: this.agentId, sessionId, occurredAt: one.occurredAt, event });
    }
  }

  #reportSoon(at: number): void {
    if (this.#isReportDue || this.runner === null) return;
    this.#isReportDue = true;
    const runner = this.runner;
    this.#at(at + SOON_MS, (now) => {
      this.#isReportDue = false;
      if (this.runner === runner) this.#report(now);
    });
  }

  #report(at: number): void {
    const { agentId, kind, plan, runner } = this;
    if (kind.watch === 'promise') {
      const status = { kind: 'http', everyMs: REPORT_EVERY_MS };
      for (const sessionId of this.sessionIds)
        this.#unsent.push({ kind: 'status', agentId, sessionId, occurredAt: at, status });
      return;
    }
    if (runner === null) return;
    const about: AgentStatus = {
      kind: plan.kind,
      ...(kind.watch === 'child' ? {} : { agentGoesOn: true }),
      runner: { id: runner.id, pid: 4_100_000, startedAt: runner.startedAt },
      everyMs: REPORT_EVERY_MS,
      unreachable: this.#watch?.unreachable,
      sessions: this.sessionIds.size,
    };
    const records = [...this.sessionIds].map((sessionId) => {
      const facts: SessionFacts = {
        sessionId,
        attachments: null,
        ...(this.#process ? { process: this.#process } : {}),
      };
      const open = this.#open.get(sessionId) ?? NOTHING_OPEN;
      return statusRecord(agentId, about, at, { facts, open, last: this.#watch?.lastActivityOf(sessionId) });
    });
    const picked = this.#reports.pick(records, at);
    this.#unsent.push(...(picked.length > 0 ? picked : [statusRecord(agentId, about, at)]));
  }
}

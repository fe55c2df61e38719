import { CUSTOM } from '@interlude/protocol/event-fields';
import { RUNNER_AWAY_MS, RUNNER_GRACE_MS } from '@interlude/protocol/limits';
import { LIST_LIMIT } from '@interlude/protocol/queries';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { wentSilent } from '@interlude/protocol/session-predicates';
import { retryMs } from '@interlude/runner/host/server-request';
import type { WriteTransaction } from '@/db/writes';
import { unscoped } from '@/lib/server/access/request-context';
import { CommandHub } from '@/lib/server/commands/command-hub';
import {
  connectRunner,
  disconnectRunner,
  disconnectUnresponsive,
  renewRunners,
} from '@/lib/server/commands/runner-connection';
import { readInbox, WHOLE_INBOX } from '@/lib/server/queries/read-inbox';
import { readSession, readSessionPage, type SessionFilter } from '@/lib/server/queries/read-sessions';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { callRoute } from '../call-route';
import { type InProcessTarget, ingest, inProcessTarget } from '../ingest-target';
import { type Death, type LifePlan, SimulatedLife, type SimulatedRunner } from './simulated-life';

/** A server's death. */
interface ServerPlan {
  /** Whole seconds after the world starts. */
  diesAtMs: number;
  /** True if a second server continues on the same database; otherwise the server restarts. */
  hasAnother: boolean;
  downMs: number;
}

export interface WorldPlan {
  server: ServerPlan | null;
  lives: readonly LifePlan[];
}

const T0 = 1_795_170_000_000;
const TICK_MS = 1_000;
/** Interval at which `CommandHub` renews its streams' leases. */
const RENEW_MS = RUNNER_AWAY_MS / 3;
/** Maximum backoff of `CommandClient`. */
const LONGEST_WAIT_MS = (RUNNER_GRACE_MS * 2) / 3;
const MOST_MS = 30_000;
const MOST_TOGETHER_MS = 15_000;
/** Extra observation time: a late runner must not revive a stale state. */
const WATCHED_ON_MS = 3_000;
const AT_WORK: SessionFilter = { states: ['working', 'waiting-on-background'], listed: [], agentId: null, words: [] };

/** A false statement of a page about a life. */
interface FalseStatement {
  agentId: string;
  plan: LifePlan;
  /** Milliseconds since the death. */
  afterMs: number;
  what: string;
}

interface Server {
  hub: CommandHub;
  /** Open command streams by agent. */
  streams: Map<string, string>;
}

interface Resident {
  life: SimulatedLife;
  seq: number;
  /** The connected runner and its server. */
  link: { runner: SimulatedRunner; server: Server; streamId: string } | null;
  failures: number;
  retryAt: number;
  /** Milliseconds from the death to the last wrong page. */
  wrongForMs: number;
  /** Observed for long enough. */
  isOver: boolean;
}

/**
 * Simulated lives with their runners' streams and outboxes, and one or two servers on one database. One clock advances
 * by seconds. Server timers (due work, lease renewal) run at their intervals.
 */
export class SimulatedWorld {
  readonly wrongs: FalseStatement[] = [];
  readonly #plan: WorldPlan;
  readonly #target: InProcessTarget;
  readonly #clock: { now: number };
  readonly #residents: Resident[];
  /** The first server is the one that dies. */
  #servers: Server[] = [];
  #isDown = false;
  #streams = 0;

  static async open(plan: WorldPlan): Promise<SimulatedWorld> {
    const clock = { now: T0 };
    return new SimulatedWorld(plan, clock, await inProcessTarget(() => clock.now));
  }

  private constructor(plan: WorldPlan, clock: { now: number }, target: InProcessTarget) {
    this.#plan = plan;
    this.#clock = clock;
    this.#target = target;
    this.#servers = plan.server?.hasAnother ? [this.#server(), this.#server()] : [this.#server()];
    this.#residents = plan.lives.map((one, index) => {
      const isServers = one.death === 'server' || one.death === 'runner and server';
      const diesAt = T0 + (isServers ? (plan.server?.diesAtMs ?? 0) : one.diesAtMs);
      const life = new SimulatedLife(`a${index}`, one, T0, diesAt);
      return { life, seq: 0, link: null, failures: 0, retryAt: 0, wrongForMs: 0, isOver: false };
    });
  }

  /** Each life's plan, whether it was busy at its death, and how long its page was wrong. */
  get lived(): { plan: LifePlan; wasAtWork: boolean; wrongForMs: number }[] {
    return this.#residents.map(({ life: { plan, wasAtWork }, wrongForMs }) => ({ plan, wasAtWork, wrongForMs }));
  }

  async run(): Promise<void> {
    try {
      for (const { life } of this.#residents) await life.begin();
      const last = Math.max(...this.#plan.lives.map(({ diesAtMs }) => diesAtMs), this.#plan.server?.diesAtMs ?? 0);
      while (this.#clock.now < T0 + last + MOST_MS + WATCHED_ON_MS + 2 * TICK_MS) await this.#tick();
      if (this.#plan.server !== null) await this.#falseAlarms();
    } finally {
      await this.#target.close();
    }
  }

  async #tick(): Promise<void> {
    this.#clock.now += TICK_MS;
    const now = this.#clock.now;
    await this.#serverDiesOrIsBack(now - T0);
    for (const { life, link, isOver } of this.#residents) {
      life.canSend = !this.#isDown && (life.runner === null || link !== null);
      if (!isOver) await life.advance(now);
    }
    if (this.#isDown) return this.#refused();
    await this.#connect();
    await Promise.all(this.#residents.map((resident) => this.#sends(resident)));
    await this.#disconnect();
    await Promise.all(this.#residents.map((resident) => this.#writeTo(resident)));
    for (const server of this.#servers) {
      if ((now - T0) % RENEW_MS === 0) await this.#renews(server);
      await server.hub.sweepDue();
    }
    await this.#look();
  }

  #server(): Server {
    const { database } = this.#target;
    const now = () => this.#clock.now;
    return { hub: new CommandHub({ database, now, steady: () => now() - T0 }), streams: new Map() };
  }

  async #serverDiesOrIsBack(ms: number): Promise<void> {
    const { server } = this.#plan;
    if (server === null) return;
    if (ms === server.diesAtMs) {
      const [dead, ...others] = this.#servers;
      this.#servers = others;
      this.#isDown = others.length === 0;
      for (const resident of this.#residents) {
        if (resident.link === null || resident.link.server !== dead) continue;
        resident.link = null;
        this.#fails(resident);
      }
    }
    if (this.#isDown && ms >= server.diesAtMs + server.downMs) {
      await this.#target.restart();
      this.#servers = [this.#server()];
      this.#isDown = false;
    }
  }

  /** Maximum milliseconds that a page may be wrong. A restarted server grants every runner a grace period. */
  #mostMs(death: Death, deadSince: number): number {
    const mostMs = death === 'runner and server' ? MOST_TOGETHER_MS : MOST_MS;
    const { server } = this.#plan;
    if (server === null || server.hasAnother) return mostMs;
    const diesAt = T0 + server.diesAtMs;
    if (deadSince > diesAt + server.downMs) return mostMs;
    if (deadSince + mostMs < diesAt) return mostMs;
    return Math.max(mostMs, diesAt + server.downMs + RUNNER_GRACE_MS + 2 * TICK_MS - deadSince);
  }

  /** Fails the reconnection attempts of runners while no server is up. */
  #refused(): void {
    for (const resident of this.#residents) {
      if (resident.life.runner !== null && resident.retryAt <= this.#clock.now) this.#fails(resident);
    }
  }

  #fails(resident: Resident): void {
    resident.failures += 1;
    const chance = (resident.life.plan.phase % 100) / 100;
    resident.retryAt = this.#clock.now + retryMs('unavailable', resident.failures, chance, LONGEST_WAIT_MS);
  }

  /** Opens streams for runners without one. */
  async #connect(): Promise<void> {
    const now = this.#clock.now;
    const opened = this.#residents.flatMap((resident) => {
      const { life, link, retryAt } = resident;
      const { runner, agentId, plan } = life;
      if (runner === null || link?.runner === runner || retryAt > now) return [];
      const server = this.#servers[plan.death.includes('server') ? 0 : this.#servers.length - 1] as Server;
      const streamId = `stream-${++this.#streams}`;
      server.streams.set(agentId, streamId);
      Object.assign(resident, { link: { runner, server, streamId }, failures: 0 });
      return [{ agentId, runner, streamId }];
    });
    await this.#transact(async (transaction) => {
      for (const { agentId, runner, streamId } of opened) {
        await connectRunner(transaction, agentId, runner, streamId, now);
      }
    }, opened);
  }

  async #sends(resident: Resident): Promise<void> {
    const { life, link } = resident;
    // an outbox is sent once its runner has reconnected
    if (link === null && life.runner !== null) return;
    const records = life.takeUnsent();
    if (records.length === 0) return;
    const numbered = records.map((one) => ({ ...one, seq: ++resident.seq }));
    const { rejected } = await ingest(this.#target, numbered, 1, life.agentId);
    if (rejected.length > 0) throw new Error(`rejected: ${JSON.stringify(rejected[0])}`);
  }

  /** Closes connections of dead processes unless their machine is lost too. */
  async #disconnect(): Promise<void> {
    const closed = this.#residents.flatMap((resident) => {
      const { life, link } = resident;
      const { agentId, plan } = life;
      if (link === null || life.runner === link.runner) return [];
      resident.link = null;
      const dies = plan.death.includes('runner');
      if (dies && (plan.isSilent || plan.death === 'runner and server')) return [];
      link.server.streams.delete(agentId);
      return [{ agentId, streamId: link.streamId }];
    });
    await this.#transact(async (transaction) => {
      for (const { agentId, streamId } of closed) {
        await disconnectRunner(transaction, agentId, streamId, this.#clock.now);
      }
    }, closed);
  }

  async #transact(job: (transaction: WriteTransaction) => Promise<void>, about: readonly { agentId: string }[]) {
    if (about.length === 0) return;
    await this.#target.database.writes.run(job, { keys: about.map(({ agentId }) => `agent:${agentId}` as const) });
  }

  /** Sends a user message to one of the life's sessions. */
  async #writeTo({ life }: Resident): Promise<void> {
    const { deadSince, plan, sessionIds } = life;
    const [sessionId] = sessionIds;
    if (deadSince === null || plan.writtenAfterMs === null || sessionId === undefined) return;
    const at = deadSince + plan.writtenAfterMs;
    if (at > this.#clock.now || at <= this.#clock.now - TICK_MS) return;
    await callRoute(this.#target.context, 'POST', `/sessions/${sessionId}/messages`, {
      body: { text: 'Are you there?', clientId: `${life.agentId}-message` },
    });
  }

  async #renews({ streams }: Server): Promise<void> {
    const ids = [...streams.values()];
    const gone = await this.#target.database.writes.run(async (transaction) => {
      const mute = await disconnectUnresponsive(transaction, ids, this.#clock.now);
      await renewRunners(transaction, ids, this.#clock.now);
      return mute;
    });
    for (const [agentId, id] of [...streams]) if (gone.includes(id)) streams.delete(agentId);
  }

  /** Compares the session list with the lives. Checks a life's pages once its deadline has passed. */
  async #look(): Promise<void> {
    const now = this.#clock.now;
    const sight = unscoped(this.#target.database);
    const { sessions } = await readSessionPage(sight, { after: null, limit: LIST_LIMIT }, AT_WORK);
    const shown = new Map<string, SessionSummary[]>();
    for (const one of sessions) shown.set(one.agentId, [...(shown.get(one.agentId) ?? []), one]);
    for (const resident of this.#residents) {
      const { life, isOver } = resident;
      const { deadSince, plan } = life;
      if (deadSince === null || isOver) continue;
      const afterMs = now - deadSince;
      const found = (shown.get(life.agentId) ?? []).flatMap((session) => wrongIn(session, life));
      if (found.length > 0) resident.wrongForMs = Math.max(resident.wrongForMs, afterMs);
      const mostMs = this.#mostMs(plan.death, deadSince);
      if (afterMs < mostMs) continue;
      resident.isOver = afterMs >= MOST_MS + WATCHED_ON_MS;
      // rows are checked every second, pages once
      if (afterMs < mostMs + TICK_MS) found.push(...(await this.#opened(life)));
      for (const what of found) this.wrongs.push({ agentId: life.agentId, plan, afterMs, what });
    }
  }

  /** Returns all false statements on the pages of a life's sessions. */
  async #opened(life: SimulatedLife): Promise<string[]> {
    const sight = unscoped(this.#target.database);
    const found: string[] = [];
    for (const id of life.sessionIds) {
      const session = (await readSession(sight, id))?.session;
      if (session === undefined) continue;
      found.push(...wrongIn(session, life));
      const running = (await readTasks(sight, id))?.tasks.filter(({ status }) => status === 'running') ?? [];
      if (running.length > 0 && !session.away?.agentGoesOn) found.push(`${id}: task ${running[0]?.id} runs`);
      const turns = (await readTranscript(sight, id, { before: null, limit: 50 }))?.turns ?? [];
      const open = turns.filter(({ state, kind }) => state === 'open' && kind !== 'none');
      // a turn's clock stops while its session is away
      if (open.length > 0 && session.away === null) found.push(`${id}: turn ${open[0]?.id} is open`);
      if (!wentSilent(session) && session.state !== 'failed') continue;
      const { items } = await readInbox(sight, { after: null, limit: 1 }, { ...WHOLE_INBOX, sessionId: id });
      if (items.length === 0) found.push(`${id} is ${session.state}, and not in the inbox`);
    }
    return found;
  }

  /** Finds live runners reported as unknown. A runner whose server died is not gone. */
  async #falseAlarms(): Promise<void> {
    const { rows } = await this.#target.database.reader.execute(
      `SELECT DISTINCT agent_id FROM events WHERE name = '${CUSTOM.runnerAway}'`,
    );
    const away = new Set(rows.map((row) => row.agent_id));
    for (const { life } of this.#residents) {
      if (life.plan.death !== 'server' || !away.has(life.agentId)) continue;
      this.wrongs.push({ agentId: life.agentId, plan: life.plan, afterMs: 0, what: 'it was unknown, and lived' });
    }
  }
}

/** Returns all false statements in a list row. */
function wrongIn(session: SessionSummary, { runner, isStartedAgain }: SimulatedLife): string[] {
  const { id, state, evidence, runningTaskCount, openTurnId, pendingRequestCount, away } = session;
  const found: string[] = [];
  // an undelivered message goes to the next process
  const isGivenAgain = evidence.note === 'delivering' && isStartedAgain;
  if ((state === 'working' && !isGivenAgain) || state === 'waiting-on-background') found.push(`${id} is ${state}`);
  // never ended: the agent continues unobserved
  const agentContinues = away?.agentGoesOn === true;
  if (runningTaskCount > 0 && !agentContinues) found.push(`${id} has ${runningTaskCount} running tasks`);
  if (openTurnId !== null && away === null) found.push(`${id} has an open turn`);
  // an answer is kept for the returning runner
  if (pendingRequestCount > 0 && runner !== null && away === null) found.push(`${id} asks for something`);
  return found;
}

import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { MAX_EVERY_MS, MAX_RECORDS_PER_REQUEST, MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import { userTurn } from './turn-events';
import { requestOpened } from './wire-runner';

/** Writes an agent's events to a live server over HTTP, without the runner. */
export class EventWriter {
  readonly #server: { url: string; token: string };
  readonly #agentId: string;
  readonly #epoch: number;
  #seq = 0;

  /** @param epoch a new one if an earlier writer used the same server */
  constructor(server: { url: string; token: string }, agentId: string, epoch = 1) {
    this.#server = server;
    this.#agentId = agentId;
    this.#epoch = epoch;
  }

  /** Announces the session before its first turn, as a runner does. */
  arrive(sessionId: string): Promise<void> {
    return this.#send([{ kind: 'status', sessionId, occurredAt: Date.now(), status: { kind: 'test' } }]);
  }

  /** Resolves when all events are acknowledged. The newest event occurred at `at`, earlier ones `stepMs` apart. */
  async write(
    sessionId: string,
    events: readonly AgUiEvent[],
    { at = Date.now(), stepMs = 0 }: { at?: number; stepMs?: number } = {},
  ): Promise<void> {
    const timed = events.map((event, index) => ({ at: at - (events.length - 1 - index) * stepMs, event }));
    await this.tell(sessionId, timed);
  }

  /** Writes many sessions in as few requests as possible. */
  async writeMany(sessions: readonly { sessionId: string; events: readonly AgUiEvent[] }[]): Promise<void> {
    const occurredAt = Date.now();
    await this.#write(
      sessions.flatMap(({ sessionId, events }) =>
        events.map((event) => ({ kind: 'event', sessionId, occurredAt, event })),
      ),
    );
  }

  /** Writes events with explicit times. */
  tell(sessionId: string, timed: readonly { at: number; event: AgUiEvent }[]): Promise<void> {
    return this.#write(timed.map(({ at, event }) => ({ kind: 'event', sessionId, occurredAt: at, event })));
  }

  async #write(records: readonly object[]): Promise<void> {
    let batch: object[] = [];
    let bytes = 0;
    for (const record of records) {
      const size = JSON.stringify(record).length * 2;
      if (batch.length === MAX_RECORDS_PER_REQUEST || bytes + size > MAX_REQUEST_BYTES) {
        await this.#send(batch);
        [batch, bytes] = [[], 0];
      }
      batch.push(record);
      bytes += size;
    }
    if (batch.length > 0) await this.#send(batch);
  }

  /** Reports a failed hook, as a runner does. */
  async failHook(hook: string, error: string, sessionId?: string): Promise<void> {
    const insight = { signal: 'hook_fatal', source: hook, ...(sessionId === undefined ? {} : { sessionId }) };
    const log = { level: 'fatal', component: `hook:${hook}`, message: error, insight };
    await this.#send([{ kind: 'log', occurredAt: Date.now(), log }]);
  }

  /** Writes a log line, optionally with an insight. */
  async log(log: { level: string; component: string; message: string; insight?: object }): Promise<void> {
    await this.#send([{ kind: 'log', occurredAt: Date.now(), log }]);
  }

  /**
   * Promises a report every ten minutes. Otherwise the server presumes the agent gone after two silent minutes, which
   * on a slow machine disturbs unrelated tests.
   */
  async staysInTouch(): Promise<void> {
    await this.#send([{ kind: 'status', occurredAt: Date.now(), status: { everyMs: MAX_EVERY_MS } }]);
  }

  /** Writes an event that pages don't show, as a sign of life: they show a silence of more than a minute. */
  showLife(sessionId: string): Promise<void> {
    return this.write(sessionId, [{ type: 'CUSTOM', name: 'test:alive', value: {} }]);
  }

  /** Sends a status record, as a runner does. */
  async status(sessionId: string | undefined, status: object): Promise<void> {
    await this.#send([{ kind: 'status', sessionId, occurredAt: Date.now(), status }]);
  }

  /** Declares records of a session lost. */
  async lose(sessionId: string, count: number): Promise<void> {
    await this.#send([{ kind: 'lost', sessionId, occurredAt: Date.now(), lost: { count, reason: 'outbox-full' } }]);
  }

  /** Writes a record of an unknown kind, which the server quarantines. */
  async puzzle(sessionId: string): Promise<void> {
    const rejected = await this.#post([{ kind: 'novelty', sessionId, occurredAt: Date.now(), what: 'is this' }]);
    if (rejected.length !== 1) throw new Error('expected the record to be rejected');
  }

  /** Writes events about tasks without an owner; the server parks them. */
  async park(sessionId: string, events: readonly AgUiEvent[]): Promise<void> {
    const records = events.map((event) => ({ kind: 'event', sessionId, occurredAt: Date.now(), event }));
    const parked = await this.#post(records);
    if (parked.length !== events.length) throw new Error(`not parked: ${JSON.stringify(parked)}`);
  }

  async #send(records: object[]): Promise<void> {
    const rejected = await this.#post(records);
    if (rejected.length > 0) throw new Error(`refused: ${JSON.stringify(rejected)}`);
  }

  /** @returns the rejected records */
  async #post(records: object[]): Promise<unknown[]> {
    const body = JSON.stringify({
      producer: { id: this.#agentId, epoch: this.#epoch },
      records: records.map((record) => ({ ...record, seq: ++this.#seq, agentId: this.#agentId })),
    });
    const headers = { authorization: `Bearer ${this.#server.token}`, 'content-type': 'application/json' };
    const send = () => fetch(`${this.#server.url}/api/v1/events`, { method: 'POST', headers, body });
    // The server may close an idle connection at this moment. A resend is deduplicated.
    const response = await send().catch(send);
    const answer = (await response.json()) as { rejected?: unknown[] };
    if (!response.ok || answer.rejected === undefined) throw new Error(`refused: ${JSON.stringify(answer)}`);
    return answer.rejected;
  }
}

/** Writes a session of finished turns `r0`, `r1`, … with various heights. The agent has the session's name. */
export async function writeManyTurns(
  server: { url: string; token: string },
  session: string,
  count: number,
): Promise<void> {
  const turns = Array.from({ length: count }, (_, index) =>
    userTurn(`r${index}`, `Question ${index}`, `Answer ${index}. ${'It takes some words. '.repeat((index * 7) % 40)}`),
  );
  await new EventWriter(server, session).write(session, turns.flat(), { stepMs: 40 });
}

export const turnStarted = (runId: string): AgUiEvent => ({ type: 'RUN_STARTED', threadId: 's', runId });
export const turnFailed = (runId: string, message: string): AgUiEvent[] => [
  turnStarted(runId),
  { type: 'RUN_ERROR', threadId: 's', runId, message },
];
export const permissionAsked = (id: string, title: string): AgUiEvent =>
  requestOpened({ request_id: id, kind: 'permission', tool_name: 'Bash', title, input: { command: 'ls' } });

/** Writes a request in session `asks` and a failure in session `fails`. @returns their agent `builder` */
export async function writeInbox(server: { url: string; token: string }): Promise<EventWriter> {
  const agent = new EventWriter(server, 'builder');
  await agent.write('asks', [
    ...userTurn('r1', 'List the **files**', 'Yes.'),
    turnStarted('r2'),
    permissionAsked('q1', 'List the files'),
  ]);
  await agent.staysInTouch();
  await agent.write('fails', [
    ...userTurn('r1', 'Mend the login test', 'Trying.'),
    ...turnFailed('r2', 'No credit left'),
  ]);
  return agent;
}

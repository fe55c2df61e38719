import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { MAX_EVERY_MS, MAX_RECORDS_PER_REQUEST, MAX_REQUEST_BYTES } from '@interlude/protocol/limits';

/** An agent that writes to a live server over HTTP, as anyone without our runner would. */
export class EventWriter {
  readonly #server: { url: string; token: string };
  readonly #agentId: string;
  #seq = 0;

  constructor(server: { url: string; token: string }, agentId: string) {
    this.#server = server;
    this.#agentId = agentId;
  }

  /** Makes the session known before its first turn, as a runner does. */
  arrive(sessionId: string): Promise<void> {
    return this.#send([{ kind: 'status', sessionId, occurredAt: Date.now(), status: { kind: 'test' } }]);
  }

  /** Resolves when all of it is acknowledged. The newest event occurred at `at`, the others `stepMs` apart before it. */
  async write(
    sessionId: string,
    events: readonly AgUiEvent[],
    { at = Date.now(), stepMs = 0 }: { at?: number; stepMs?: number } = {},
  ): Promise<void> {
    const told = events.map((event, index) => ({ at: at - (events.length - 1 - index) * stepMs, event }));
    await this.tell(sessionId, told);
  }

  /** The same of many sessions at once, in as few requests as may be. */
  async writeMany(sessions: readonly { sessionId: string; events: readonly AgUiEvent[] }[]): Promise<void> {
    const occurredAt = Date.now();
    await this.#write(
      sessions.flatMap(({ sessionId, events }) =>
        events.map((event) => ({ kind: 'event', sessionId, occurredAt, event })),
      ),
    );
  }

  /** Events, each with the time at which it occurred. */
  tell(sessionId: string, told: readonly { at: number; event: AgUiEvent }[]): Promise<void> {
    return this.#write(told.map(({ at, event }) => ({ kind: 'event', sessionId, occurredAt: at, event })));
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

  /** A hook of the agent died, as its runner tells it. */
  async failHook(hook: string, error: string, sessionId?: string): Promise<void> {
    const insight = { signal: 'hook_fatal', source: hook, ...(sessionId === undefined ? {} : { sessionId }) };
    const log = { level: 'fatal', component: `hook:${hook}`, message: error, insight };
    await this.#send([{ kind: 'log', occurredAt: Date.now(), log }]);
  }

  /** A line of the agent's log, with what it tells beside its words. */
  async log(log: { level: string; component: string; message: string; insight?: object }): Promise<void> {
    await this.#send([{ kind: 'log', occurredAt: Date.now(), log }]);
  }

  /**
   * Promises to say something every ten minutes. Who does not, and is silent for two minutes, is taken for gone: on a busy
   * machine that comes in the middle of what looks at others.
   */
  async staysInTouch(): Promise<void> {
    await this.#send([{ kind: 'status', occurredAt: Date.now(), status: { everyMs: MAX_EVERY_MS } }]);
  }

  /** How the agent is, as its runner tells it. */
  async status(sessionId: string, status: object): Promise<void> {
    await this.#send([{ kind: 'status', sessionId, occurredAt: Date.now(), status }]);
  }

  /** What its outbox had to drop of a session. */
  async lose(sessionId: string, count: number): Promise<void> {
    await this.#send([{ kind: 'lost', sessionId, occurredAt: Date.now(), lost: { count, reason: 'outbox-full' } }]);
  }

  /** Something that nobody knows, which is kept in quarantine. */
  async puzzle(sessionId: string): Promise<void> {
    const rejected = await this.#post([{ kind: 'novelty', sessionId, occurredAt: Date.now(), what: 'is this' }]);
    if (rejected.length !== 1) throw new Error('it was known');
  }

  /** Events about tasks that no session started: all of them are parked. */
  async park(sessionId: string, events: readonly AgUiEvent[]): Promise<void> {
    const records = events.map((event) => ({ kind: 'event', sessionId, occurredAt: Date.now(), event }));
    const parked = await this.#post(records);
    if (parked.length !== events.length) throw new Error(`not parked: ${JSON.stringify(parked)}`);
  }

  async #send(records: object[]): Promise<void> {
    const rejected = await this.#post(records);
    if (rejected.length > 0) throw new Error(`refused: ${JSON.stringify(rejected)}`);
  }

  /** @returns what was rejected */
  async #post(records: object[]): Promise<unknown[]> {
    const body = JSON.stringify({
      producer: { id: this.#agentId, epoch: 1 },
      records: records.map((record) => ({ ...record, seq: ++this.#seq, agentId: this.#agentId })),
    });
    const headers = { authorization: `Bearer ${this.#server.token}`, 'content-type': 'application/json' };
    const send = () => fetch(`${this.#server.url}/api/v1/events`, { method: 'POST', headers, body });
    // The server may close an idle connection just then. Sent again, what it has already is a duplicate.
    const response = await send().catch(send);
    const answer = (await response.json()) as { rejected?: unknown[] };
    if (!response.ok || answer.rejected === undefined) throw new Error(`refused: ${JSON.stringify(answer)}`);
    return answer.rejected;
  }
}

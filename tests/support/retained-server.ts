import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { unscoped } from '@/lib/server/access/request-context';
import { INVARIANTS } from '@/lib/server/maintenance/check';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { HistoryKeeper } from '@/lib/server/retention/history-keeper';
import { historyRetention } from '@/lib/server/retention/retention-settings';
import { callRoute } from './call-route';
import { type InProcessTarget, ingest, inProcessTarget } from './ingest-target';

export const DAY_MS = 24 * 60 * 60_000;

/** A server with ten days of retention and a test-controlled clock. */
export class RetainedServer {
  now = 1_795_170_000_000;
  readonly target: InProcessTarget;
  #seq = 0;

  private constructor(open: (now: () => number) => InProcessTarget) {
    this.target = open(() => this.now);
  }

  static async start(): Promise<RetainedServer> {
    const clock = { now: () => 0 };
    const target = await inProcessTarget(() => clock.now());
    const server = new RetainedServer((now) => {
      clock.now = now;
      return target;
    });
    return server;
  }

  /** Writes events in one request. */
  async write(events: readonly AgUiEvent[], sessionId = 's1', agentId = 'a1'): Promise<void> {
    await this.send(events.map((event) => ({ kind: 'event', agentId, sessionId, event })));
  }

  /** Sends records of any kind in one request. */
  async send(records: readonly Record<string, unknown>[]): Promise<void> {
    await ingest(
      this.target,
      records.map((record) => {
        this.#seq += 1;
        return { seq: this.#seq, agentId: 'a1', occurredAt: this.now, ...record };
      }),
    );
  }

  /** Advances the clock by days. Events before and after record the time. */
  async later(days: number): Promise<void> {
    const marker: AgUiEvent = { type: 'CUSTOM', name: 'marker', value: {} };
    await this.write([marker]);
    this.now += days * DAY_MS;
    await this.write([marker]);
  }

  /** Calls a route as the owner. */
  async ask(method: 'GET' | 'POST' | 'PUT', path: string, body?: unknown) {
    const response = await callRoute(this.target.context, method, path, { body });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      answer: response.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : text,
    };
  }

  /** Runs retention. */
  async retain(env: Record<string, string> = { INTERLUDE_RETENTION_DAYS: '10' }): Promise<void> {
    const { context } = this.target;
    await new HistoryKeeper(context, historyRetention(env)).removeOld();
  }

  page(limit = 50, sessionId = 's1') {
    return readTranscript(unscoped(this.target.database), sessionId, { before: null, limit });
  }

  tasks(sessionId = 's1') {
    return readTasks(unscoped(this.target.database), sessionId);
  }

  async rows(sql: string): Promise<Record<string, unknown>[]> {
    return (await this.target.database.reader.execute(sql)).rows.map((row) => ({ ...row }));
  }

  /** Changes rows directly. */
  async change(sql: string): Promise<void> {
    await this.target.database.writes.run((transaction) => transaction.execute(sql));
  }

  /** Findings of `interlude db check`. */
  async faults(): Promise<string[]> {
    const found: string[] = [];
    for (const { name, sql, next, describe } of INVARIANTS) {
      const args = { after: -1, until: Number.MAX_SAFE_INTEGER };
      const { rows } = await this.target.database.reader.execute(next === null ? sql : { sql, args });
      for (const row of rows) found.push(`${name}: ${describe(row)}`);
    }
    return found;
  }

  close(): Promise<void> {
    return this.target.close();
  }
}

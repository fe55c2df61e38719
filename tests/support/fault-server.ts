import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { gunzipSync } from 'node:zlib';
import type { IngestRecord, IngestResponse } from '@interlude/protocol/envelope';
import { reservePort } from './reserve-port.mjs';

/** An HTTP server in front of a Ledger. Each scripted fault applies to one request. */
export type Fault =
  | { kind: 'none' }
  /** Cuts the connection before the ledger receives anything. */
  | { kind: 'reset' }
  /** Stores the records, then cuts the connection before the response. */
  | { kind: 'taken-then-reset' }
  /** Stores the records, then cuts the response in the middle. */
  | { kind: 'taken-then-half-an-answer' }
  /** Stores the records and never responds. */
  | { kind: 'taken-then-silence' }
  /** Stores the records and responds late. */
  | { kind: 'slow'; ms: number }
  /** Stores the records and responds on `release`. */
  | { kind: 'held' }
  /** Sends this response without storing anything. */
  | { kind: 'answer'; status: number; body?: unknown; headers?: Record<string, string> };

interface ReceivedRequest {
  at: number;
  authorization: string | undefined;
  encoding: string | undefined;
  bytes: number;
  producer: { id: string; epoch: number };
  seqs: number[];
}

export class FaultServer {
  readonly ledger = new Ledger();
  readonly requests: ReceivedRequest[] = [];
  /** Chooses the fault when the script is empty. */
  behaviour: (request: ReceivedRequest) => Fault = () => ({ kind: 'none' });
  /** Sends the held response. */
  release: () => void = () => {};
  #server: Server | null = null;
  readonly #port: number;
  readonly #script: Fault[] = [];
  readonly #watchers = new Set<() => void>();

  private constructor(port: number) {
    this.#port = port;
  }

  static async start(): Promise<FaultServer> {
    const server = new FaultServer(await reservePort());
    await server.listen();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Scripts the next requests, one fault each. */
  script(...faults: Fault[]): void {
    this.#script.push(...faults);
  }

  /** Listens; after `close`, on the same port. */
  listen(): Promise<void> {
    const server = createServer((request, response) => this.#handle(request, response));
    this.#server = server;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
  }

  /** Refuses further connections. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (!server) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  /** Resolves once `condition` holds. Checked after each request. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#watchers.add(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return; // the client disconnected mid-request
    }
    const raw = Buffer.concat(chunks);
    const encoding = request.headers['content-encoding'];
    const body = JSON.parse((encoding === 'gzip' ? gunzipSync(raw) : raw).toString('utf8'));
    const received: ReceivedRequest = {
      at: Date.now(),
      authorization: request.headers.authorization,
      encoding,
      bytes: raw.length,
      producer: body.producer,
      seqs: body.records.map((record: { seq: number }) => record.seq),
    };
    this.requests.push(received);
    void this.#misbehave(this.#script.shift() ?? this.behaviour(received), response, () => this.ledger.take(body));
    for (const wake of this.#watchers) wake();
    this.#watchers.clear();
  }

  async #misbehave(
    fault: Fault,
    response: ServerResponse,
    take: () => { status: number; body: unknown },
  ): Promise<void> {
    if (fault.kind === 'reset') {
      response.socket?.resetAndDestroy();
      return;
    }
    if (fault.kind === 'answer') {
      const body = fault.body ?? refusal(fault.status, 'unavailable', {}).body;
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      response.end(JSON.stringify(body));
      return;
    }
    const answer = take();
    const text = JSON.stringify(answer.body);
    if (fault.kind === 'taken-then-reset') response.socket?.resetAndDestroy();
    else if (fault.kind === 'taken-then-half-an-answer') {
      response.writeHead(answer.status, { 'content-length': text.length });
      response.write(text.slice(0, text.length / 2), () => response.socket?.destroy());
    } else if (fault.kind !== 'taken-then-silence') {
      if (fault.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, fault.ms));
      if (fault.kind === 'held') {
        await new Promise<void>((resolve) => {
          this.release = resolve;
        });
      }
      if (response.destroyed) return;
      response.writeHead(answer.status, { 'content-type': 'application/json' });
      response.end(text);
    }
  }
}

/**
 * An in-memory reference server: each producer's epoch and dense records. Responds like POST /events, so that tests can
 * compare an outbox with what arrived.
 */
class Ledger {
  readonly #producers = new Map<string, { epoch: number; lastSeq: number }>();
  /** Accepted records in order of arrival. */
  readonly records: IngestRecord[] = [];
  duplicates = 0;
  /** The server's clock in epoch milliseconds; null accepts any epoch. */
  now: number | null = null;

  take(body: { producer: { id: string; epoch: number }; records: IngestRecord[] }): { status: number; body: unknown } {
    const { producer, records } = body;
    const known = this.#producers.get(producer.id) ?? { epoch: 0, lastSeq: 0 };
    if (producer.epoch < known.epoch) {
      return refusal(403, 'stale_epoch', { currentEpoch: known.epoch });
    }
    if (this.now !== null && producer.epoch > Math.max(this.now, known.epoch)) {
      return refusal(409, 'epoch_ahead', { now: this.now, currentEpoch: known.epoch || null });
    }
    const state = producer.epoch > known.epoch ? { epoch: producer.epoch, lastSeq: 0 } : { ...known };
    if ((records[0]?.seq ?? 0) > state.lastSeq + 1) {
      return refusal(409, 'sequence_gap', { expectedSeq: state.lastSeq + 1 });
    }
    const response: IngestResponse = { ackedSeq: 0, accepted: 0, duplicates: 0, rejected: [], position: '0' };
    const fresh: IngestRecord[] = [];
    for (const record of records) {
      if (record.seq <= state.lastSeq) response.duplicates += 1;
      else if (record.seq === state.lastSeq + 1) {
        state.lastSeq = record.seq;
        response.accepted += 1;
        fresh.push(record);
      } else return refusal(400, 'malformed', {});
    }
    this.#producers.set(producer.id, state);
    this.records.push(...fresh);
    this.duplicates += response.duplicates;
    return { status: 200, body: { ...response, ackedSeq: state.lastSeq, position: String(this.records.length) } };
  }

  /** Simulates a deleted database. `records` keeps the earlier records for assertions. */
  forget(): void {
    this.#producers.clear();
  }

  /** Log messages in order of arrival. */
  get messages(): string[] {
    return this.records.flatMap((record) => (record.kind === 'log' ? [record.log.message] : []));
  }

  /** Number of records declared lost. */
  get lost(): number {
    return this.records.reduce((sum, record) => sum + (record.kind === 'lost' ? record.lost.count : 0), 0);
  }
}

export function refusal(status: number, code: string, details: object): { status: number; body: unknown } {
  return { status, body: { error: { code, message: `refused: ${code}`, ...details } } };
}

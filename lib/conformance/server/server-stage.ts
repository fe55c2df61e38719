import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { type Fields, fieldsOf, parseJson } from '@interlude/protocol/fields';
import { API_BASE } from '@interlude/protocol/version';
import { agree, Hopeless, type Patience, type Progress, until } from '../check';
import { custom, PlayedAgent } from './played-agent';
import { SseReader } from './sse-reader';

/**
 * A server under test, and what is played in front of it. Everything is told under ids that no other run has.
 *
 * Failure: whatever became of the checks, `close` ends the streams, says that the played sessions have ended, archives
 * them and puts their agents away. What was stored stays: Interlude never forgets.
 */
export interface Server {
  url: string;
  token: string;
}

export interface Answer {
  status: number;
  headers: Headers;
  body: Fields;
  text: string;
}

/** Longer than any request takes that is answered at all. */
const REQUEST_MS = 30_000;

export class ServerStage {
  readonly server: Server;
  readonly patience: Patience;
  readonly prefix = `conformance-${randomBytes(5).toString('hex')}`;
  readonly #agents: PlayedAgent[] = [];
  readonly #streams = new AbortController();
  readonly #over = new AbortController();

  constructor(server: Server, withinMs: number, signal: AbortSignal) {
    this.server = { ...server, url: server.url.replace(/\/+$/, '') };
    // Each stream that is open listens for the end.
    setMaxListeners(0, this.#over.signal);
    setMaxListeners(0, this.#streams.signal);
    this.patience = { withinMs, signal: AbortSignal.any([signal, this.#over.signal]) };
    setMaxListeners(0, this.patience.signal);
  }

  /** @throws Hopeless if no Interlude answers there, or it does not take the token */
  async enter(): Promise<void> {
    const asked = await this.get('/sessions?limit=1').catch((error: Error) => {
      const cause = (error.cause as { code?: string } | undefined)?.code ?? error.message;
      throw new Hopeless(`${this.server.url} does not answer (${cause}); start it, or name another with --url`);
    });
    if (asked.status === 401)
      throw new Hopeless(`${this.server.url} does not take the token; give its owner’s with --token-file`);
    if (asked.status !== 200 || typeof asked.body.position !== 'string')
      throw new Hopeless(`${this.server.url} is no Interlude: GET /sessions answered ${asked.status}`);
  }

  /** An agent of this check alone. */
  agent(name: string): PlayedAgent {
    const agent = new PlayedAgent(this, `${this.prefix}-${name}`);
    this.#agents.push(agent);
    return agent;
  }

  async send(path: string, init: RequestInit & { headers?: Record<string, string> } = {}): Promise<Answer> {
    const deadline = AbortSignal.any([this.patience.signal, AbortSignal.timeout(REQUEST_MS)]);
    const url = `${this.server.url}${/^\/(healthz|readyz|sign-in)/.test(path) ? '' : API_BASE}${path}`;
    const response = await fetch(url, { redirect: 'manual', signal: deadline, ...init });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: fieldsOf(parseJson(text)), text };
  }

  get authorized(): Record<string, string> {
    return { authorization: `Bearer ${this.server.token}` };
  }

  get(path: string): Promise<Answer> {
    return this.send(path, { headers: this.authorized });
  }

  /** @throws Unmet unless the answer is 200 */
  async read(path: string): Promise<Answer> {
    const answer = await this.get(path);
    agree(`GET ${path}`, { status: answer.status }, { status: 200 }, 'Serve this read model.');
    return answer;
  }

  post(path: string, body: unknown, method = 'POST'): Promise<Answer> {
    const headers = { ...this.authorized, 'content-type': 'application/json' };
    return this.send(path, { method, headers, body: JSON.stringify(body) });
  }

  /** @throws Unmet if the answer has another status, or another body */
  async ask(path: string, body: unknown, expected: Fields, method = 'POST'): Promise<Fields> {
    const answer = await this.post(path, body, method);
    agree(`${method} ${path}`, { status: answer.status, ...answer.body }, expected, 'Answer as PROTOCOL.md says.');
    return answer.body;
  }

  stream(path: string, headers: Record<string, string> = {}): Promise<SseReader> {
    const url = `${this.server.url}${API_BASE}${path}`;
    const patience = { ...this.patience, signal: AbortSignal.any([this.patience.signal, this.#streams.signal]) };
    return SseReader.open(url, { ...this.authorized, ...headers }, patience);
  }

  until<Found>(
    expected: string,
    look: () => Found | null | undefined | false | Promise<Found | null | undefined | false>,
    todo: string,
    { withinMs = this.patience.withinMs, ...progress }: Progress & { withinMs?: number } = {},
  ): Promise<Found> {
    return until({ ...this.patience, withinMs }, expected, look, todo, progress);
  }

  /** @returns the sessions that could not be ended and put away */
  async close(): Promise<string[]> {
    this.#streams.abort();
    const left = await Promise.all(this.#agents.map((agent) => this.#putAway(agent)));
    this.#over.abort();
    return left.flat();
  }

  async #putAway({ id, outbox }: PlayedAgent): Promise<string[]> {
    const { body } = await this.get(`/sessions?agent=${encodeURIComponent(id)}`).catch(() => ({ body: {} as Fields }));
    const sessionIds = ((body.sessions as Fields[] | undefined) ?? []).map((session) => String(session.id));
    const left = await Promise.all(
      sessionIds.map(async (sessionId, at) => {
        const over = custom('session:ended', { reason: 'the conformance check is over', exitCode: 0 });
        const record = { kind: 'event', agentId: id, sessionId, occurredAt: Date.now(), event: over, seq: 1 };
        // An outbox of its own: whatever the check did to its numbers, these are right.
        const producer = { id: `${outbox.id}/end/${at}`, epoch: Date.now() };
        const path = `/sessions/${encodeURIComponent(sessionId)}/arrangement`;
        const told = await this.post('/events', { producer, records: [record] }).catch(() => null);
        const archived = await this.post(path, { archived: true }, 'PUT').catch(() => null);
        return told?.status === 200 && archived?.status === 200 ? [] : [sessionId];
      }),
    );
    await this.post(`/agents/${encodeURIComponent(id)}/retirement`, { retired: true }, 'PUT').catch(() => null);
    return left.flat();
  }
}

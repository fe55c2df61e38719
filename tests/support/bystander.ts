import { Agent, request } from 'node:http';
import { FrameReader } from './frames';

/** Does the ordinary things at a server, one after the other, and measures how long each takes. */
export class Bystander {
  readonly #url: string;
  readonly #runner: string;
  readonly #viewer: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #tookMs = new Map<string, number[]>();
  #seq = 0;
  readonly #id = 'bystander';

  /**
   * @param runner its token
   * @param viewer the token of somebody who looks at its session
   */
  constructor(url: string, { runner, viewer }: { runner: string; viewer: string }) {
    this.#url = url;
    this.#runner = runner;
    this.#viewer = viewer;
  }

  /** Does each thing once and measures nothing: the first of each also loads the code that answers. */
  async warmUp(): Promise<void> {
    await this.live(() => true);
    this.#tookMs.clear();
  }

  /** Goes on until `isOver`, and at least once. */
  async live(isOver: () => boolean): Promise<void> {
    await this.#post();
    const response = await fetch(`${this.#url}/api/v1/stream?topic=session:${this.#id}`, {
      headers: { authorization: `Bearer ${this.#viewer}` },
    });
    const stream = new FrameReader(response.body as ReadableStream<Uint8Array>);
    await stream.frame('up-to-date');
    do {
      const since = performance.now();
      await this.#measured('POST of an event', () => this.#post());
      await stream.until((frames) =>
        frames.some((frame) => frame.event === 'session-event' && frame.data.seq === this.#seq),
      );
      this.#note('event on the stream', performance.now() - since);
      stream.frames.length = 0;
      await this.#measured('GET of a session', () => this.#get(`/api/v1/sessions/${this.#id}`));
      await this.#measured('GET of a transcript', () => this.#get(`/api/v1/sessions/${this.#id}/transcript?limit=1`));
      await this.#measured('GET of the health', () => this.#get('/healthz'));
      // as many as a busy page and its runner, and not all that the server can do
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    } while (!isOver());
    await stream.cancel();
  }

  /** Of each thing: how often it was done, and how long it took, in milliseconds. */
  get figures(): { what: string; count: number; medianMs: number; p999Ms: number; worstMs: number }[] {
    return [...this.#tookMs].map(([what, times]) => {
      const sorted = times.toSorted((a, b) => a - b);
      const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
      return { what, count: sorted.length, medianMs: at(0.5), p999Ms: at(0.999), worstMs: at(1) };
    });
  }

  get worstMs(): number {
    return Math.max(...this.figures.map(({ worstMs }) => worstMs));
  }

  async #measured(what: string, act: () => Promise<unknown>): Promise<void> {
    const since = performance.now();
    await act();
    this.#note(what, performance.now() - since);
  }

  #note(what: string, tookMs: number): void {
    const times = this.#tookMs.get(what);
    if (times === undefined) this.#tookMs.set(what, [tookMs]);
    else times.push(tookMs);
  }

  #post(): Promise<void> {
    this.#seq += 1;
    const event = { type: 'CUSTOM', name: 'bystander', value: this.#seq };
    const record = { kind: 'event', agentId: this.#id, sessionId: this.#id, occurredAt: Date.now(), event };
    const body = { producer: { id: this.#id, epoch: 1 }, records: [{ ...record, seq: this.#seq }] };
    return this.#ask('POST', '/api/v1/events', this.#runner, JSON.stringify(body));
  }

  #get(path: string): Promise<void> {
    return this.#ask('GET', path, this.#viewer);
  }

  #ask(method: string, path: string, token: string, body?: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      };
      const sent = request(`${this.#url}${path}`, { method, headers, agent: this.#agent }, (response) => {
        response.resume();
        const { statusCode } = response;
        response.once('end', () =>
          statusCode === 200 ? resolve() : reject(new Error(`${method} ${path}: ${statusCode}`)),
        );
      });
      sent.once('error', reject);
      sent.end(body);
    });
  }
}

const PAUSE_MS = 5;

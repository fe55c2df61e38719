import { existsSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { FrameReader } from './frames';

/** Wall-clock milliseconds. */
interface Latency {
  ms: number;
  /** Milliseconds without time spent waiting for a CPU. */
  ownMs: number;
}

/** Sends ordinary requests one after the other and measures each latency. */
export class LatencyProbe {
  readonly #url: string;
  readonly #runner: string;
  readonly #viewer: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #took = new Map<string, Latency[]>();
  readonly #pids: readonly number[];
  #seq = 0;
  readonly #id = 'probe';

  /**
   * @param runner token of a runner
   * @param viewer token of a reader of its session
   */
  constructor({ url, pid }: { url: string; pid: number }, { runner, viewer }: { runner: string; viewer: string }) {
    this.#url = url;
    this.#pids = [pid, process.pid];
    this.#runner = runner;
    this.#viewer = viewer;
  }

  /** Sends each request once without measuring, because the first one loads code. */
  async warmUp(): Promise<void> {
    await this.live(() => true);
    this.#took.clear();
  }

  /** Repeats until `isOver`, at least once. */
  async live(isOver: () => boolean): Promise<void> {
    await this.#post();
    const response = await fetch(`${this.#url}/api/v1/stream?topic=session:${this.#id}`, {
      headers: { authorization: `Bearer ${this.#viewer}` },
    });
    const stream = new FrameReader(response.body as ReadableStream<Uint8Array>);
    await stream.frame('up-to-date');
    do {
      const isThere = () =>
        stream.frames.some(({ event, data }) => event === 'session-event' && data.seq === this.#seq);
      await this.#measured('event on the stream', async () => {
        await this.#measured('POST of an event', () => this.#post());
        await stream.until(isThere);
      });
      stream.frames.length = 0;
      await this.#measured('GET of a session', () => this.#get(`/api/v1/sessions/${this.#id}`));
      await this.#measured('GET of a transcript', () => this.#get(`/api/v1/sessions/${this.#id}/transcript?limit=1`));
      await this.#measured('GET of the health', () => this.#get('/healthz'));
      // the load of a busy page and its runner
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    } while (!isOver());
    await stream.cancel();
  }

  /** One line per request kind: count and latencies. */
  get figures(): string[] {
    return [...this.#took].map(([what, all]) => {
      const sorted = all.map(({ ms }) => ms).toSorted((a, b) => a - b);
      const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
      const own = all.reduce((most, { ownMs }) => Math.max(most, ownMs), 0);
      const [median, p999, worst] = [at(0.5), at(0.999), at(1)].map((ms) => ms.toFixed(1));
      return `${what}: median ${median}, 99.9 % ${p999}, worst ${worst} ms (${own.toFixed(1)} without CPU waits) of ${sorted.length}`;
    });
  }

  /** The longest latency, without time spent waiting for a CPU. */
  get worstMs(): number {
    let worst = 0;
    for (const all of this.#took.values()) for (const { ownMs } of all) worst = Math.max(worst, ownMs);
    return worst;
  }

  async #measured(what: string, act: () => Promise<unknown>): Promise<void> {
    const [since, waited] = [performance.now(), this.#waitedMs()];
    await act();
    const ms = performance.now() - since;
    const took = { ms, ownMs: ms - (this.#waitedMs() - waited) };
    const all = this.#took.get(what);
    if (all === undefined) this.#took.set(what, [took]);
    else all.push(took);
  }

  /** Milliseconds that both processes have waited for a CPU since they started; 0 where Linux doesn't report it. */
  #waitedMs(): number {
    const files = this.#pids.map((pid) => `/proc/${pid}/schedstat`).filter((file) => existsSync(file));
    return files.reduce((sum, file) => sum + Number(readFileSync(file, 'utf8').split(' ')[1]) / 1e6, 0);
  }

  #post(): Promise<void> {
    this.#seq += 1;
    const event = { type: 'CUSTOM', name: 'probe', value: this.#seq };
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

const PAUSE_MS = 50;

/** Latency of `/healthz`, polled while some work runs. */
interface HealthProbe {
  /** The slowest response in milliseconds, an upper bound of event loop blocking. */
  longestMs: number;
  answers: number;
}

const EVERY_MS = 5;

/** Polls `/healthz` over a dedicated connection, so that connection setup isn't measured. */
export async function probeHealth(url: string, work: () => Promise<void>): Promise<HealthProbe> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const probe: HealthProbe = { longestMs: 0, answers: 0 };
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const began = performance.now();
      await ask(`${url}/healthz`, agent);
      probe.longestMs = Math.max(probe.longestMs, performance.now() - began);
      probe.answers += 1;
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await asking;
    agent.destroy();
  }
  return probe;
}

function ask(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    request(url, { agent }, (response) => {
      response.resume();
      response.on('end', resolve);
    })
      .on('error', reject)
      .end();
  });
}

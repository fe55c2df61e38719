import { Agent, get } from 'node:http';
import { startLiveServer } from '../support/live-server';
import { note, report } from './report';

/** Status and latency (ms) of one request to the session list. */
interface Tried {
  status: number;
  tookMs: number;
}

/** Keeps requests with a wrong token in flight from one address. */
class Guesser {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #url: string;
  readonly #guesses: Promise<void>[];
  #isOver = false;

  /** @param inFlight number of concurrent requests */
  constructor(url: string, inFlight: number) {
    this.#url = `${url}/api/v1/sessions?limit=1`;
    this.#guesses = Array.from({ length: inFlight }, () => this.#guess());
  }

  /** Sends sequential requests with a valid token from the same address. */
  async try(token: string, count: number): Promise<Tried[]> {
    const tried: Tried[] = [];
    while (tried.length < count) tried.push(await this.#send(token));
    return tried;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#guesses);
    this.#agent.destroy();
  }

  async #guess(): Promise<void> {
    while (!this.#isOver) await this.#send('a-token-that-is-wrong-0123456789');
  }

  #send(token: string): Promise<Tried> {
    const since = performance.now();
    const headers = { authorization: `Bearer ${token}` };
    return new Promise((resolve, reject) => {
      get(this.#url, { agent: this.#agent, headers }, (response) => {
        response.resume().once('end', () => {
          resolve({ status: response.statusCode ?? 0, tookMs: performance.now() - since });
        });
      }).once('error', reject);
    });
  }
}

/**
 * Latency of requests with a valid token while 260 with a wrong token are in flight from the same address: the 11th
 * fastest of 12. A refused request counts as infinitely slow.
 */
const server = await startLiveServer();
const guesser = new Guesser(server.url, 260);
try {
  // from here on the queue is full
  await guesser.try(server.token, 3);
  const tried = await guesser.try(server.token, 12);
  const times = tried.map(({ status, tookMs }) => (status === 200 ? tookMs : Number.POSITIVE_INFINITY));
  times.sort((a, b) => a - b);
  note('valid requests beside 260 invalid ones in flight, answered 200', times.filter(Number.isFinite).length, 'of 12');
  report('valid requests beside 260 invalid ones in flight, 11th of 12', times[10] ?? Number.POSITIVE_INFINITY, 'ms', {
    atMost: 1_000,
  });
} finally {
  await guesser.stop();
  await server.stop();
}

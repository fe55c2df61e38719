import { Agent, get } from 'node:http';

/** The status of one request to the list of sessions, and how long its answer took, in ms. */
export interface Tried {
  status: number;
  tookMs: number;
}

/** One client that keeps requests with a wrong token in flight, from one address. */
export class Guesser {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #url: string;
  readonly #guesses: Promise<void>[];
  #isOver = false;

  /** @param inFlight how many at any moment */
  constructor(url: string, inFlight: number) {
    this.#url = `${url}/api/v1/sessions?limit=1`;
    this.#guesses = Array.from({ length: inFlight }, () => this.#guess());
  }

  /** Sends requests with a right token from the same address, one after the other. */
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

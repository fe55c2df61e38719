import { parseJson } from '@interlude/protocol/fields';
import { untimedRequest } from '../../host/agent-http';
import { connectionMessage } from '../../host/server-request';
import type { AgUiAddresses } from './agui-addresses';
import { MISSING } from './between-runs';
import { refusalIn } from './posted-run';

/** What a server may have beside its runs: a way to interrupt them, its tasks, and a way to stop those. */
export interface BesideRunsOptions {
  addresses: AgUiAddresses;
  headers: Record<string, string>;
  /** What passes, for the adapter. */
  pass(dir: 'in' | 'out', msg: object): Promise<void>;
  log(level: 'debug', message: string): void;
  signal: AbortSignal;
}

const REQUEST_MS = 15_000;

export class BesideRuns {
  readonly #options: BesideRunsOptions;
  #hasTasks = true;

  constructor(options: BesideRunsOptions) {
    this.#options = options;
  }

  /** Whether it lists its tasks, as far as is known. */
  get hasTasks(): boolean {
    return this.#hasTasks;
  }

  /** @returns whether the server has taken it */
  async interrupt(): Promise<boolean> {
    const { addresses, pass } = this.#options;
    for (const { url, body } of addresses.interrupts) {
      void pass('out', { method: 'POST', path: pathOf(url), body });
      const status = await this.#ask(url, 'POST', body).then(
        (answer) => answer.status,
        () => 0,
      );
      await pass('in', { answer: 'interrupt', status });
      if (status >= 200 && status < 300) return true;
      if (!MISSING.has(status)) return false;
    }
    return false;
  }

  /** @returns null, or why the task goes on */
  async stop(taskId: string): Promise<string | null> {
    const url = this.#options.addresses.stop(taskId);
    void this.#options.pass('out', { method: 'POST', path: pathOf(url) });
    try {
      const answer = await this.#ask(url, 'POST', {});
      if (MISSING.has(answer.status)) return 'this server has no way to stop a task';
      return answer.ok ? null : await refusalIn(answer, url);
    } catch (error) {
      return `the server can’t be reached: ${connectionMessage(error)}`;
    }
  }

  /**
   * Has the adapter read the list of tasks.
   *
   * @param about those that are open as far as is known
   * @param isDeaf whether no events are heard either, so that nothing will ever tell their ends
   * @returns whether the server has answered
   */
  async tasks(about: readonly string[], isDeaf: () => boolean): Promise<boolean> {
    const { addresses, pass, log } = this.#options;
    void pass('out', { method: 'GET', path: pathOf(addresses.tasks), about });
    try {
      const answer = await this.#ask(addresses.tasks, 'GET');
      const body = answer.ok ? parseJson(await answer.text()) : null;
      if (!answer.ok) await answer.body?.cancel();
      this.#hasTasks = body !== null || !(answer.ok || MISSING.has(answer.status));
      const isLost = !this.#hasTasks && isDeaf();
      const status = body === null ? 404 : answer.status;
      await pass('in', { answer: 'tasks', status, body, ...(isLost ? { isDeaf: true } : {}) });
      return true;
    } catch (error) {
      log('debug', `the tasks of the server are not known: ${connectionMessage(error)}`);
      return false;
    }
  }

  #ask(url: string, method: 'GET' | 'POST', body?: object): Promise<Response> {
    const headers = { accept: 'application/json', 'content-type': 'application/json', ...this.#options.headers };
    const signal = AbortSignal.any([this.#options.signal, AbortSignal.timeout(REQUEST_MS)]);
    return untimedRequest(url, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}), signal });
  }
}

function pathOf(url: string): string {
  return new URL(url).pathname;
}

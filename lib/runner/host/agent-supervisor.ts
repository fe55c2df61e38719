import { setTimeout as pause } from 'node:timers/promises';
import type { WireEnd } from '../adapters/wire';
import type { SessionFacts, SourceContext } from './source';

const STEP_MS = 500;
const LONGEST_MS = 10_000;
const RAPID_EXITS = 5;
const RAPID_WITHIN_MS = 60_000;

export type RestartDecision =
  | { kind: 'restart'; waitMs: number }
  | { kind: 'give-up'; exits: number; withinMs: number };

/** Decides when to restart a crashed agent, and when to give up. */
export class RestartPolicy {
  /** Exit times of the current series. A process that lives for a minute ends the series. */
  #exits: number[] = [];

  /** @returns a wait of 500 ms per exit in the series, up to 10 s; gives up after five exits within a minute */
  exited(startedAt: number, now: number): RestartDecision {
    if (now - startedAt >= RAPID_WITHIN_MS) this.#exits = [];
    this.#exits.push(now);
    const rapid = this.#exits.filter((at) => now - at < RAPID_WITHIN_MS).length;
    if (rapid >= RAPID_EXITS) return { kind: 'give-up', exits: rapid, withinMs: RAPID_WITHIN_MS };
    return { kind: 'restart', waitMs: Math.min(STEP_MS * this.#exits.length, LONGEST_MS) };
  }
}

type ProcessStatus = NonNullable<SessionFacts['process']>;

export interface SupervisedExit {
  reason: string;
  exitCode: number | null;
  signal: string | null;
  /** Reason not to restart; null if a restart may help. */
  fatal?: string | null;
}

export interface AgentSupervisorOptions {
  /** Names the agent in messages: `Claude Code`. */
  name: string;
  context: Pick<SourceContext, 'changed' | 'failRunner'>;
  /** Runs one process until it exits. */
  run(): Promise<SupervisedExit>;
  /** Emits the end of a process. With `goesOn`, another one follows; with `isAsked`, the runner is closing. */
  exited(end: WireEnd): Promise<void> | void;
  /** True if no work is open, so that closing need not wait. */
  isIdle(): boolean;
  /** Asks the process to exit. */
  stop(): Promise<void> | void;
  /** Kills a process that still exists `killAfterMs` after `stop`. */
  kill?(): void;
  killAfterMs?: number;
  now?: () => number;
}

/**
 * Runs the processes of one agent, one after the other, until the runner closes.
 *
 * Failure: a process that exits unexpectedly is restarted after a wait. An agent that keeps exiting, or can't run at
 * all, is given up, and the runner ends.
 */
export class AgentSupervisor {
  readonly #options: AgentSupervisorOptions;
  readonly #now: () => number;
  readonly #restarts = new RestartPolicy();
  readonly #ending = new AbortController();
  #process: ProcessStatus = { state: 'starting', pid: null, exitCode: null };
  #life: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;
  #reason = '';
  #failure: string | null = null;
  #stopWaiting = () => {};

  constructor(options: AgentSupervisorOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  get process(): ProcessStatus {
    return this.#process;
  }

  set process(process: ProcessStatus) {
    this.#process = process;
    this.#options.context.changed();
    this.checkIdle();
  }

  /** Reason why the agent was given up; null if it was not. */
  get failure(): string | null {
    return this.#failure;
  }

  /** Aborts when the runner closes. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** @param life replaces the processes, for an agent that the runner does not start */
  start(life: () => Promise<void> = () => this.#supervise()): void {
    this.#life = life();
  }

  /** Ends a wait of `close` once no work is open. */
  checkIdle(): void {
    if (this.#failure !== null || this.#options.isIdle()) this.#stopWaiting();
  }

  /** Waits up to `deadlineMs` for open work, then ends the process. A second call with 0 stops waiting. */
  close(deadlineMs: number, reason: string): Promise<void> {
    if (deadlineMs <= 0) this.#stopWaiting();
    this.#closing ??= this.#close(deadlineMs, reason);
    return this.#closing;
  }

  async #close(deadlineMs: number, reason: string): Promise<void> {
    const { isIdle, stop, kill, killAfterMs } = this.#options;
    this.#reason = reason;
    if (deadlineMs > 0 && this.#failure === null && !isIdle()) await this.#idleWithin(deadlineMs);
    this.#ending.abort();
    await stop();
    const killing = kill === undefined ? undefined : setTimeout(kill, killAfterMs);
    await this.#life;
    clearTimeout(killing);
  }

  async #supervise(): Promise<void> {
    const { run, exited, name, context } = this.#options;
    for (;;) {
      const startedAt = this.#now();
      const { reason, exitCode, signal, fatal = null } = await run();
      this.process = { state: 'exited', pid: null, exitCode, signal };
      if (this.signal.aborted) break;
      const next = this.#restarts.exited(startedAt, this.#now());
      if (fatal !== null || next.kind === 'give-up') {
        const often = next.kind === 'give-up' ? `${next.exits} times within ${next.withinMs / 1_000} s` : '';
        this.#failure = fatal ?? `${name} exited ${often}; last reason: ${reason}`;
        await exited({ reason: this.#failure, exitCode: exitCode ?? (signal === null ? 1 : null), signal });
        context.failRunner(this.#failure);
        return;
      }
      this.process = { state: 'restarting', pid: null, exitCode, signal };
      await exited({ reason, exitCode, signal, goesOn: `Restarting in ${next.waitMs / 1_000} s.` });
      await pause(next.waitMs, undefined, { signal: this.signal }).catch(() => undefined);
      if (this.signal.aborted) break;
    }
    await exited({ reason: this.#reason, isAsked: true });
  }

  #idleWithin(deadlineMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, deadlineMs);
      this.#stopWaiting = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

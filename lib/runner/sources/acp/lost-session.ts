import { setTimeout as pause } from 'node:timers/promises';
import { isSessionLost } from '../../adapters/acp/rpc';
import type { HandedMessage } from '../../host/messages-in-hand';
import { GONE, type RpcAnswer } from './acp-connection';

export interface LostSessionOptions {
  /** The agent's own id of the session. */
  nativeId(): string | null;
  /** Prompts the agent with a message. */
  give(message: HandedMessage): Promise<RpcAnswer>;
  /** Whether no turn has taken the message up. */
  isUntaken(message: HandedMessage): boolean;
  /** Has the agent load the session again. @returns why that failed, or null */
  reload(): Promise<RpcAnswer['error']>;
  /** Ends the agent's process, which is started again. */
  restart(): Promise<void>;
  /** How long the agent may take to load it. */
  patienceMs: number;
}

/**
 * A session that its agent has lost while its process lives, as when an adapter's inner agent has died: every prompt is
 * refused. It is loaded again; where that fails or does not help, the agent is restarted; where that does not help either,
 * the agent is given up.
 *
 * Ordering: what is given meanwhile waits until it is loaded, and goes in its order.
 * Failure: a message that no turn has taken up is given again.
 */
export class LostSession {
  readonly #options: LostSessionOptions;
  #loading: Promise<RpcAnswer['error']> | null = null;
  /** Set while the process is being ended for it. */
  #ended: { cause: string; untaken: HandedMessage[] } | null = null;
  /** The agent was restarted for it, and has taken no prompt since. */
  #isLastTry = false;

  constructor(options: LostSessionOptions) {
    this.#options = options;
  }

  async prompt(message: HandedMessage): Promise<RpcAnswer> {
    const { give, isUntaken, restart, nativeId } = this.#options;
    for (let hasLoaded = false; ; hasLoaded = true) {
      // Else it is written at once.
      if (this.#loading !== null) await this.#loading;
      const answer = await give(message);
      const { error } = answer;
      if (error === null) this.#isLastTry = false;
      if (error === null || !isSessionLost(error, nativeId())) return answer;
      const failed = hasLoaded ? error : await this.#load();
      if (failed?.isGone === true) return GONE;
      if (failed !== null) {
        this.#ended ??= { cause: failed.message, untaken: [] };
        if (isUntaken(message)) this.#ended.untaken.push(message);
        await restart();
        return GONE;
      }
      if (!isUntaken(message)) return answer;
    }
  }

  /**
   * The process has gone.
   *
   * @returns for a process that was ended for a lost session: why, what it was given in vain, and `hopeless`, why there is
   *   no use in another; null if it went by itself
   */
  exited(): { why: string; untaken: readonly HandedMessage[]; hopeless: string | null } | null {
    const ended = this.#ended;
    this.#ended = null;
    if (ended === null) return null;
    const { cause, untaken } = ended;
    const hopeless = `the agent has lost its session, and neither loading it again nor a restart helped: ${cause}`;
    const isLastTry = this.#isLastTry;
    this.#isLastTry = true;
    return { why: `it had lost its session: ${cause}`, untaken, hopeless: isLastTry ? hopeless : null };
  }

  #load(): Promise<RpcAnswer['error']> {
    const { reload, patienceMs } = this.#options;
    const tooLate = { code: null, message: `it was not loaded again within ${patienceMs / 1000} s` };
    const late = () => pause(patienceMs, tooLate, { ref: false });
    this.#loading ??= Promise.race([reload(), late()]).finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }
}

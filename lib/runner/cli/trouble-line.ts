import type { CommandLink } from '../commands/command-client';
import { troubleInWords } from '../logger/delivery-journal';
import type { Trouble } from '../outbox/drain';
import type { OutboxStatus } from '../outbox/outbox';
import { say } from './say';

/**
 * Tells in the terminal that the dashboard can't be reached or refuses the token, and later that all agents get through
 * again. Each kind of trouble is told once, however many agents meet it.
 */
export class TroubleLine {
  readonly #meanwhile: string;
  readonly #adviceOnToken: string;
  /** An agent's outbox and its stream of commands apart: one may be refused without the other. */
  readonly #troubled = new Map<string, string>();

  /**
   * @param meanwhile what happens to the agents' work
   * @param adviceOnToken what to do where the token is refused
   */
  constructor(meanwhile: string, adviceOnToken: string) {
    this.#meanwhile = meanwhile;
    this.#adviceOnToken = adviceOnToken;
  }

  status(agentId: string, { trouble, state, waiting }: OutboxStatus): void {
    // a command that ends with the dashboard need not complain
    if (state === 'stopped') return;
    const isBehind = trouble === null && waiting > 0 && state !== 'idle';
    if (!isBehind) this.#tell(`outbox of ${agentId}`, trouble);
  }

  /** That the dashboard can't be reached the outbox says. */
  link(agentId: string, link: CommandLink): void {
    const of = `commands of ${agentId}`;
    if (link.state === 'connected') this.#tell(of, null);
    else if (link.state === 'waiting' && link.cause === 'unauthorized') {
      this.#tell(of, { kind: link.cause, message: link.message });
    }
  }

  #tell(of: string, trouble: Pick<Trouble, 'kind' | 'message'> | null): void {
    const kind = trouble?.kind;
    if (kind === this.#troubled.get(of)) return;
    const isKnown = [...this.#troubled.values()].some((known) => known === kind);
    if (trouble === null) this.#troubled.delete(of);
    else this.#troubled.set(of, trouble.kind);
    // why a runner ended is told at its end
    if (trouble !== null && !isKnown && kind !== 'fenced') {
      const advice = kind === 'unauthorized' ? `; ${this.#adviceOnToken}` : '';
      say(`${troubleInWords(trouble)}${advice}; ${this.#meanwhile}`);
    }
    if (this.#troubled.size === 0) say('the dashboard is back');
  }
}

import { troubleInWords } from '@/lib/runner/logger/delivery-journal';
import type { OutboxStatus } from '@/lib/runner/outbox/outbox';
import { say } from './say';

/**
 * Tells in the terminal that the dashboard can't be reached or refuses the token, and later that all agents get through
 * again. Each kind of trouble is told once, however many agents meet it.
 */
export class TroubleLine {
  readonly #meanwhile: string;
  readonly #troubled = new Map<string, string>();

  /** @param meanwhile what happens to the agents' work */
  constructor(meanwhile: string) {
    this.#meanwhile = meanwhile;
  }

  status(agentId: string, { trouble, state, waiting }: OutboxStatus): void {
    // a command that ends with the dashboard need not complain
    if (state === 'stopped') return;
    const before = this.#troubled.get(agentId);
    const kind = trouble?.kind;
    const isBehind = trouble === null && waiting > 0 && state !== 'idle';
    if (kind === before || isBehind) return;
    const isKnown = [...this.#troubled.values()].some((known) => known === kind);
    if (trouble === null) this.#troubled.delete(agentId);
    else this.#troubled.set(agentId, trouble.kind);
    // why a runner ended is told at its end
    if (trouble !== null && !isKnown && kind !== 'fenced') say(`${troubleInWords(trouble)}; ${this.#meanwhile}`);
    if (this.#troubled.size === 0) say('the dashboard is back');
  }
}

import { troubleInWords } from '@/lib/runner/logger/delivery-journal';
import type { OutboxStatus } from '@/lib/runner/outbox/outbox';
import { say } from './say';

/**
 * Tells in the terminal what people would otherwise wonder about: the dashboard can't be reached, or refuses the token;
 * and that all agents get through again. Each kind of trouble is told once, however many agents meet it.
 */
export class TroubleLine {
  readonly #meanwhile: string;
  readonly #troubled = new Map<string, string>();

  /** @param meanwhile what becomes of what the agents do */
  constructor(meanwhile: string) {
    this.#meanwhile = meanwhile;
  }

  status(agentId: string, { trouble, state, waiting }: OutboxStatus): void {
    // what ends with the dashboard has nothing to complain about
    if (state === 'stopped') return;
    const before = this.#troubled.get(agentId);
    const kind = trouble?.kind;
    const isBehind = trouble === null && waiting > 0 && state !== 'idle';
    if (kind === before || isBehind) return;
    const isKnown = [...this.#troubled.values()].some((known) => known === kind);
    if (trouble === null) this.#troubled.delete(agentId);
    else this.#troubled.set(agentId, trouble.kind);
    // why a runner is over is told as it ends
    if (trouble !== null && !isKnown && kind !== 'fenced') say(`${troubleInWords(trouble)}; ${this.#meanwhile}`);
    if (this.#troubled.size === 0) say('the dashboard is back');
  }
}

import type { OutboxNotice } from '../outbox/delivery';
import type { OutboxStatus } from '../outbox/outbox';
import type { Endpoint } from '../server-request';

/** What a replay prints on stderr: on a terminal one line that is updated, and the start and end of each outage. */
export class ReplayProgress {
  readonly #lines: number;
  readonly #endpoint: Endpoint;
  readonly #moves = process.stderr.isTTY === true;
  #line = 0;
  #status: OutboxStatus | null = null;
  #isAway = false;
  #unreachable: { afterMs: number; controller: AbortController; timer: NodeJS.Timeout | null } | null = null;

  constructor(lines: number, endpoint: Endpoint) {
    this.#lines = lines;
    this.#endpoint = endpoint;
  }

  line(line: number): void {
    this.#line = line;
    this.#draw();
  }

  status(status: OutboxStatus): void {
    this.#status = status;
    this.#draw();
    this.#watch();
    const { trouble } = status;
    if (trouble?.kind === 'unavailable' && !this.#isAway) {
      this.#isAway = true;
      void this.#tellUnreachable(trouble.message);
    } else if (trouble === null && this.#isAway) {
      this.#isAway = false;
      this.say('the dashboard is back');
    }
  }

  notice(notice: OutboxNotice): void {
    this.say(notice.message);
  }

  /** Fires if nothing has got through for this long. */
  unreachableFor(afterMs: number): AbortSignal {
    this.#unreachable = { afterMs, controller: new AbortController(), timer: null };
    this.#watch();
    return this.#unreachable.controller.signal;
  }

  say(message: string): void {
    if (this.#moves) process.stderr.write('\r\x1b[K');
    process.stderr.write(`interlude: ${message}\n`);
  }

  /** Clears the moving line. */
  end(): void {
    if (this.#moves && this.#status) process.stderr.write('\r\x1b[K');
    this.#status = null;
    if (this.#unreachable?.timer) clearTimeout(this.#unreachable.timer);
    this.#unreachable = null;
  }

  #watch(): void {
    const watch = this.#unreachable;
    if (!watch) return;
    const trouble = this.#status?.trouble;
    if (!trouble && watch.timer) {
      clearTimeout(watch.timer);
      watch.timer = null;
    } else if (trouble && !watch.timer) {
      watch.timer = setTimeout(() => watch.controller.abort(), watch.afterMs);
    }
  }

  async #tellUnreachable(reason: string): Promise<void> {
    const { url } = await this.#endpoint();
    this.say(`${url} can't be reached (${reason}); what waits is sent as soon as it answers`);
  }

  #draw(): void {
    if (!this.#moves || !this.#status) return;
    const waiting = this.#status.waiting > 0 ? `, ${this.#status.waiting} records to acknowledge` : '';
    process.stderr.write(`\r\x1b[Kline ${this.#line} of ${this.#lines}${waiting}`);
  }
}

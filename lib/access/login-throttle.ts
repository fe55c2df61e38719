import { AppError } from '@/lib/protocol/errors';

/** Wrong secrets of one address in a minute that slow nothing down. */
const FREE = 20;
const WINDOW_MS = 60_000;
/** Milliseconds for which the requests of an address gather. */
const ROUND_MS = 600;
/** Requests compared per round. 260 in flight from one address are all answered within a second. */
const MOST_COMPARED = 300;
const MOST_LINES = 10_000;

/** Lets a request go on, or refuses it. */
type Settle = (isCompared: boolean) => void;

/** The requests of one client address. */
interface Line {
  /** When the last wrong secrets came, the oldest first. */
  failedAt: number[];
  /** The requests that wait for the end of the current round; null while none does. */
  round: Set<Settle> | null;
}

/**
 * Slows down guessing of secrets that a person chose. After FREE wrong ones in a minute from one client address, the
 * requests of this address gather in rounds of ROUND_MS. At the end, MOST_COMPARED of them go on, chosen at random, and
 * the others are refused. The right secret waits as well, because a faster answer would reveal it. Each of n requests in a
 * round is compared with a probability of min(1, MOST_COMPARED / n), so that no request can displace another. Other
 * addresses never wait.
 *
 * Failure: an abandoned request leaves its round. With more than MOST_LINES addresses, the one that failed least recently
 * is forgotten.
 */
export class LoginThrottle {
  readonly #now: () => number;
  /** By client address, the one that failed least recently first. */
  readonly #lines = new Map<string, Line>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Resolves when a secret from this address may be compared.
   *
   * @param signal aborts when the client is gone
   * @throws AppError `too_many_requests` if others of the same round are compared instead, or the client is gone
   */
  async turn(address: string, signal?: AbortSignal): Promise<void> {
    const line = this.#lines.get(address);
    if (line === undefined) return;
    const now = this.#now();
    line.failedAt = line.failedAt.filter((time) => now - time < WINDOW_MS);
    if (line.failedAt.length < FREE) return;
    const isCompared = await new Promise<boolean>((settle) => {
      const round = roundOf(line);
      round.add(settle);
      signal?.addEventListener('abort', () => round.delete(settle) && settle(false));
    });
    if (isCompared) return;
    throw new AppError('too_many_requests', 'Too many wrong tokens from your address. Try again in a second.', {
      headers: { 'retry-after': '1' },
    });
  }

  /** Records a wrong secret from this address. */
  failed(address: string): void {
    const line = this.#lines.get(address) ?? { failedAt: [], round: null };
    if (line.failedAt.length >= FREE) line.failedAt.shift();
    line.failedAt.push(this.#now());
    this.#lines.delete(address);
    this.#lines.set(address, line);
    const [oldest] = this.#lines.keys();
    if (this.#lines.size > MOST_LINES && oldest !== undefined) this.#lines.delete(oldest);
  }
}

/** The round that gathers now. */
function roundOf(line: Line): Set<Settle> {
  if (line.round !== null) return line.round;
  const round = new Set<Settle>();
  line.round = round;
  setTimeout(() => {
    line.round = null;
    const drawn = [...round].map((settle) => ({ settle, at: Math.random() })).sort((a, b) => a.at - b.at);
    round.clear();
    for (const [at, { settle }] of drawn.entries()) settle(at < MOST_COMPARED);
  }, ROUND_MS);
  return round;
}

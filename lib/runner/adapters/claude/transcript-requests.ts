import { type Fields, isObject, textOf } from '@interlude/protocol/fields';
import { Entities } from '@interlude/protocol/lifecycle/grammar';

/** Longest delay of a request's hook behind the result, milliseconds. Ours takes at most 2 s. */
const LATE_HOOK_MS = 3_000;
const CALL_LIMITS = { mostOpen: Number.POSITIVE_INFINITY, mostEnded: 64 };
/** A request unmatched for this long concerns another transcript. */
const STALE_MS = 60_000;
const MAX_REQUESTS = 64;
const MAX_DEPTH = 64;

interface Call {
  name: string;
  input: unknown;
  isMatched: boolean;
  /** Time of the result, epoch milliseconds; null while open. */
  returnedAt: number | null;
}

interface Request {
  tool: string;
  input: unknown;
  about: Fields;
  at: number;
}

/**
 * Matches permission requests in the terminal to tool calls in the transcript. A request's hook names the tool and
 * input, not the call, and may run before the call is written or after its result. The transcript holds the input as
 * the model wrote it, the hook as the tool's schema parses it: reordered keys, defaults filled in, unknown keys
 * dropped, `"5"` as 5. Seen with Edit, WebFetch and AskUserQuestion, CLI 2.1.332.
 */
export class TranscriptRequests {
  /** Open calls, and completed calls of the open turn. */
  #calls = new Entities<'call', Call>('call', CALL_LIMITS);
  #requests: Request[] = [];

  called(id: string, block: Fields): void {
    this.#calls.forget(id);
    const call = { name: textOf(block.name) ?? '', input: block.input, isMatched: false, returnedAt: null };
    this.#calls.take(id, 'start', call);
  }

  returned(id: string, at: number): void {
    const call = this.#calls.about(id);
    if (this.#calls.take(id, 'result') === 'ends' && call !== undefined) call.returnedAt = at;
  }

  opened(ask: Request): void {
    this.#requests.push(ask);
    if (this.#requests.length > MAX_REQUESTS) this.#requests.shift();
  }

  /** @returns each newly matched request once, in the form of `canUseTool` arguments */
  matched(at: number): Fields[] {
    const out: Fields[] = [];
    // An unmatched request must not match an identical later call.
    this.#requests = this.#requests.filter((ask) => {
      if (at - ask.at > STALE_MS) return false;
      const toolUseID = this.#callOf(ask, at);
      if (toolUseID !== null) out.push({ ...ask.about, tool: ask.tool, input: ask.input, toolUseID });
      return toolUseID === null;
    });
    return out;
  }

  turnEnded(): void {
    for (const id of this.#calls.ended) this.#calls.forget(id);
  }

  sessionEnded(): void {
    this.#calls = new Entities('call', CALL_LIMITS);
  }

  #callOf({ tool, input }: Request, at: number): string | null {
    const alike = [...this.#calls.open, ...this.#calls.ended.reverse()].flatMap((id) => {
      const call = this.#calls.about(id);
      if (call?.name !== tool || call.isMatched || at - (call.returnedAt ?? at) > LATE_HOOK_MS) return [];
      return [{ id, call, likeness: likenessOf(call.input, input) }];
    });
    const found = alike.find(({ likeness }) => likeness === SAME) ?? alike.find(({ likeness }) => likeness === ALIKE);
    if (found === undefined) return null;
    found.call.isMatched = true;
    return found.id;
  }
}

const [OTHER, ALIKE, SAME] = [0, 1, 2];

/** SAME: equal in any key order. ALIKE: equal in shared keys. Calls no methods of untrusted values. */
function likenessOf(written: unknown, read: unknown, depth = 0): number {
  if (depth > MAX_DEPTH) return OTHER;
  if (Array.isArray(written) && Array.isArray(read)) {
    if (written.length !== read.length) return OTHER;
    return written.reduce((least, one, at) => Math.min(least, likenessOf(one, read[at], depth + 1)), SAME);
  }
  if (isObject(written) && isObject(read)) {
    const keys = Object.keys(written);
    const shared = keys.filter((key) => Object.hasOwn(read, key));
    const isWhole = shared.length === keys.length && shared.length === Object.keys(read).length;
    const likeness = isWhole ? SAME : ALIKE;
    return shared.reduce((least, key) => Math.min(least, likenessOf(written[key], read[key], depth + 1)), likeness);
  }
  if (written === read) return SAME;
  return isScalar(written) && isScalar(read) && String(written) === String(read) ? ALIKE : OTHER;
}

function isScalar(value: unknown): boolean {
  return typeof value !== 'object' || value === null;
}

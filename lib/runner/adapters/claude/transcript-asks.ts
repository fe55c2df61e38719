import { type Fields, isObject, textOf } from '@interlude/protocol/fields';
import { Entities } from '@interlude/protocol/lifecycle/grammar';

/** Longest delay of a question's hook behind the answer, in milliseconds. Ours takes 2 s at most. */
const LATE_MS = 3_000;
/** Most calls with a result that are kept for that long. */
const MOST = { mostOpen: Number.POSITIVE_INFINITY, mostEnded: 64 };
/** A question whose call is not in the transcript by then is not about this transcript. */
const STALE_MS = 60_000;
/** Most questions that wait for their calls. */
const MAX_ASKS = 64;
/** Deepest value that is compared. */
const MAX_DEPTH = 64;

interface Call {
  name: string;
  input: unknown;
  isAskedFor: boolean;
  /** Time of its result, epoch milliseconds; null while it has none. */
  returnedAt: number | null;
}

interface Ask {
  tool: string;
  input: unknown;
  about: Fields;
  at: number;
}

/**
 * Finds the tool call of a transcript that a question in the terminal is about. The question's hook names the tool and
 * its input, not the call, and may run before the call is in the transcript or after the call's result. The
 * transcript has the input as the model wrote it, the hook as the tool's schema reads it: keys in another order,
 * defaults filled in, unknown keys left out, `"5"` as 5. Seen with Edit, WebFetch and AskUserQuestion, CLI 2.1.332.
 */
export class TranscriptAsks {
  /** Calls without a result, and calls of the open turn that have one. */
  #calls = new Entities<'call', Call>('call', MOST);
  #asks: Ask[] = [];

  called(id: string, block: Fields): void {
    this.#calls.forget(id);
    const call = { name: textOf(block.name) ?? '', input: block.input, isAskedFor: false, returnedAt: null };
    this.#calls.take(id, 'start', call);
  }

  returned(id: string, at: number): void {
    const call = this.#calls.about(id);
    if (this.#calls.take(id, 'result') === 'ends' && call !== undefined) call.returnedAt = at;
  }

  asked(ask: Ask): void {
    this.#asks.push(ask);
    if (this.#asks.length > MAX_ASKS) this.#asks.shift();
  }

  /** @returns the questions whose calls are known by now, each once, as `canUseTool` would have been called */
  matched(at: number): Fields[] {
    const out: Fields[] = [];
    // A question that matches no call must not match the same call made much later.
    this.#asks = this.#asks.filter((ask) => {
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
    this.#calls = new Entities('call', MOST);
  }

  /** The call that a question is about, which may have its result already. */
  #callOf({ tool, input }: Ask, at: number): string | null {
    const alike = [...this.#calls.open, ...this.#calls.ended.reverse()].flatMap((id) => {
      const call = this.#calls.about(id);
      if (call?.name !== tool || call.isAskedFor || at - (call.returnedAt ?? at) > LATE_MS) return [];
      return [{ id, call, likeness: likenessOf(call.input, input) }];
    });
    const found = alike.find(({ likeness }) => likeness === SAME) ?? alike.find(({ likeness }) => likeness === ALIKE);
    if (found === undefined) return null;
    found.call.isAskedFor = true;
    return found.id;
  }
}

const [OTHER, ALIKE, SAME] = [0, 1, 2];

/** SAME: equal, in any order of keys. ALIKE: equal in every key that both have. Calls no method of a hostile value. */
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

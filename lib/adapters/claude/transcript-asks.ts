import { type Fields, isObject, textOf } from '@/lib/protocol/fields';
import { remember } from '../remember';

/** The hook that tells of a question may be heard this long after the answer. Ours takes 2 s at most. */
const LATE_MS = 3_000;
/** Most calls that are kept for that long. */
const MAX_RETURNED = 64;
/** A question whose call is not in the transcript by then is not about this transcript. */
const STALE_MS = 60_000;
/** Most questions that wait for their calls. */
const MAX_ASKS = 64;
/** Deepest value that is compared. */
const MAX_DEPTH = 64;

interface Call {
  name: string;
  input: unknown;
}

interface Ask {
  tool: string;
  input: unknown;
  about: Fields;
  at: number;
}

/**
 * Which tool call of a transcript a question in the terminal is about: the hook that tells of the question names the
 * tool and its input, not the call, and may be heard before the call is in the transcript or after its result. The
 * transcript has the input as the model wrote it, the hook as the tool's schema reads it: keys in another order,
 * defaults filled in, unknown keys left out, `"5"` as 5. Seen with Edit, WebFetch and AskUserQuestion, CLI 2.1.332.
 */
export class TranscriptAsks {
  /** Calls without a result. */
  readonly #calls = new Map<string, Call>();
  /** The ones of them for which a request was told. */
  readonly #askedFor = new Set<string>();
  /** Calls of the open turn that have a result, and for which no request was told. */
  readonly #returned = new Map<string, Call & { at: number }>();
  #asks: Ask[] = [];

  called(id: string, block: Fields): void {
    this.#calls.set(id, { name: textOf(block.name) ?? '', input: block.input });
  }

  returned(id: string, at: number): void {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (!this.#askedFor.delete(id) && call !== undefined) remember(this.#returned, id, { ...call, at }, MAX_RETURNED);
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
    this.#returned.clear();
  }

  sessionEnded(): void {
    this.#calls.clear();
    this.#askedFor.clear();
    this.#returned.clear();
  }

  /** The call that a question is about. It may have its result before the hook is heard. */
  #callOf({ tool, input }: Ask, at: number): string | null {
    const open = [...this.#calls].filter(([id]) => !this.#askedFor.has(id));
    const late = [...this.#returned].filter(([, call]) => at - call.at <= LATE_MS).reverse();
    const alike = [...open, ...late].flatMap(([id, call]) =>
      call.name === tool ? [{ id, likeness: likenessOf(call.input, input) }] : [],
    );
    const found = alike.find(({ likeness }) => likeness === SAME) ?? alike.find(({ likeness }) => likeness === ALIKE);
    if (found === undefined) return null;
    if (!this.#returned.delete(found.id)) this.#askedFor.add(found.id);
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

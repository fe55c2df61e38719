import { type Fields, textOf } from '@/lib/protocol/fields';
import { remember } from '../remember';

/** The hook that tells of a question may be heard this long after the answer. Ours takes 2 s at most. */
const LATE_MS = 3_000;
/** Most calls that are kept for that long. */
const MAX_RETURNED = 64;
/** A question whose call is not in the transcript by then is not about this transcript. */
const STALE_MS = 60_000;
/** Most questions that wait for their calls. */
const MAX_ASKS = 64;

interface Call {
  name: string;
  input: string;
}

interface Ask {
  tool: string;
  input: unknown;
  about: Fields;
  at: number;
}

/**
 * Which tool call of a transcript a question in the terminal is about: the hook that tells of the question names the
 * tool and its input, not the call, and may be heard before the call is in the transcript or after its result.
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
    this.#calls.set(id, { name: textOf(block.name) ?? '', input: JSON.stringify(block.input) });
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
      const toolUseID = this.#callOf(ask.tool, JSON.stringify(ask.input), at);
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
  #callOf(tool: string, input: string, at: number): string | null {
    const isIt = (call: Call) => call.name === tool && call.input === input;
    const open = [...this.#calls].find(([id, call]) => isIt(call) && !this.#askedFor.has(id))?.[0] ?? null;
    if (open !== null) {
      this.#askedFor.add(open);
      return open;
    }
    const late = [...this.#returned].findLast(([, call]) => isIt(call) && at - call.at <= LATE_MS)?.[0] ?? null;
    if (late !== null) this.#returned.delete(late);
    return late;
  }
}

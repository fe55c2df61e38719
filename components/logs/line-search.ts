import type { Position } from '@interlude/protocol/position';
import { findHits, type Hit, joinHits, type LogFilter, matchesText } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import { hasTime, inSlice } from '@/components/ui/idle-queue';

/** What a search says of a line. */
export interface LineAnswer {
  /** Null while that is not known, or not asked. */
  isFound: boolean | null;
  /** What to mark of the text that is shown, as far as it has been looked for. */
  hits: readonly Hit[];
  /** Whether that is all. */
  isDone: boolean;
}

export const UNSEARCHED: LineAnswer = { isFound: null, hits: [], isDone: true };

interface Begun {
  text: string;
  answer: LineAnswer;
  found: Hit[];
  rest: Iterator<Hit | null>;
}

/** A line of more characters takes its turn, as it may alone take longer than there is time for while it is rendered. */
const MOST_AT_ONCE = 4_000;
/** So many lines are remembered: more than are ever laid out. */
const MOST_LINES = 1_000;

/**
 * What is searched for, and what that says of the lines that are laid out. A regex may take tens of milliseconds over
 * one line: each line is asked once, the first while they are rendered and the rest in turn.
 */
export class LineSearch {
  readonly filter: LogFilter;
  readonly #judges: boolean;
  readonly #begun = new Map<Position, Begun>();

  /** @param judges whether there are lines that it does not find, which are to be told from the others */
  constructor(filter: LogFilter, judges: boolean) {
    this.filter = filter;
    this.#judges = judges;
  }

  /** @param text of the line, as much as is shown */
  answer(line: LogLine, text: string): LineAnswer {
    const { answer } = this.#of(line, text);
    if (answer.isDone) return answer;
    // without a regex it takes no time worth naming, and the server's markup has it
    if (this.filter.regex === null && !this.#judges) return this.#work(line, text, () => true);
    return line.message.length <= MOST_AT_ONCE && hasTime() ? this.goOn(line, text) : answer;
  }

  /** Looks further, for a slice of time. */
  goOn(line: LogLine, text: string): LineAnswer {
    return inSlice((goesOn) => this.#work(line, text, goesOn));
  }

  #work(line: LogLine, text: string, goesOn: () => boolean): LineAnswer {
    const begun = this.#of(line, text);
    let { isFound, isDone } = begun.answer;
    while (!isDone) {
      if (this.#judges && isFound === null) {
        isFound = matchesText(this.filter, line.message);
        isDone = !isFound;
      } else {
        const { value, done } = begun.rest.next();
        if (value) begun.found.push(value);
        isDone = done === true;
      }
      if (!goesOn()) break;
    }
    begun.answer = { isFound, isDone, hits: joinHits(begun.found) };
    return begun.answer;
  }

  #of({ position }: LogLine, text: string): Begun {
    const known = this.#begun.get(position);
    if (known?.text === text) return known;
    const isFound = known?.answer.isFound ?? null;
    const begun: Begun = {
      text,
      answer: { isFound, hits: [], isDone: isFound === false },
      found: [],
      rest: findHits(this.filter, text),
    };
    this.#begun.set(position, begun);
    const oldest = this.#begun.keys().next().value;
    if (this.#begun.size > MOST_LINES && oldest !== undefined) this.#begun.delete(oldest);
    return begun;
  }
}

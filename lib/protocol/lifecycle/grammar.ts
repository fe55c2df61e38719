/**
 * The grammar of what is open in a session: turns, texts, calls, tasks, requests and brackets.
 *
 * A table per kind gives the next state and a verdict for every state and input. The tables are total by type: a new
 * state or input does not compile until every pair is decided. Adapters, ingest, the AG-UI endpoint, the runner's host
 * and traces act on the verdict and never decide themselves what is open.
 *
 * ```
 *            start            end                     start              result
 *   text:  new ───► open ───► ended          call:  new ───► open ─┬─► closed ───► answered
 *                                                                  └──────────────────┘
 *            start             end, presume           ask              answer
 *   task:  new ───► running ───► ended       request: new ───► open ───► resolved
 *                       ▲     presumed ◄─┘
 * ```
 *
 * Ordering: inputs about one thing arrive in its producer's order.
 * Failure: an input that is invalid in a state has a verdict too. Nothing throws, and nothing stays open when its turn,
 * speaker or process ends.
 */

export type Verdict =
  | 'begins'
  | 'continues'
  | 'ends'
  /** A repetition without effect. */
  | 'repeats'
  /** The real end, or a sign of life, after an inferred end. */
  | 'corrects'
  /** After the end. */
  | 'late'
  /** Without a beginning. */
  | 'stray';

type Table<State extends string, Input extends string> = {
  readonly [S in State]: { readonly [I in Input]: readonly [next: State, verdict: Verdict] };
};

/**
 * A turn, from the first sign of its beginning to the last sign of its end.
 * `held`: an announced turn that may stay empty. It is shown once something happens in it.
 */
export type TurnState = 'none' | 'held' | 'open';
/**
 * `begin`: a turn with a cause. `announce`: a turn that may stay empty. `join`: another cause for a turn without content.
 * `request`: the agent calls its model. `content`: the agent speaks or acts. `end`: the turn's own end. `foreign-end`: the
 * end of something else, or an empty one. `gone`: the process or connection ended.
 */
export type TurnInput = 'begin' | 'announce' | 'join' | 'request' | 'content' | 'end' | 'foreign-end' | 'gone';

const TURN: Table<TurnState, TurnInput> = {
  none: {
    begin: ['open', 'begins'],
    announce: ['held', 'continues'],
    join: ['open', 'begins'],
    request: ['none', 'stray'],
    content: ['open', 'begins'],
    // A whole turn in one event, for example a local command answered without a model.
    end: ['none', 'begins'],
    'foreign-end': ['none', 'stray'],
    gone: ['none', 'stray'],
  },
  held: {
    begin: ['open', 'begins'],
    announce: ['held', 'repeats'],
    join: ['open', 'begins'],
    request: ['open', 'begins'],
    content: ['open', 'begins'],
    end: ['none', 'begins'],
    'foreign-end': ['none', 'stray'],
    gone: ['none', 'stray'],
  },
  open: {
    // The open turn never reported its end.
    begin: ['open', 'late'],
    announce: ['held', 'late'],
    join: ['open', 'continues'],
    request: ['open', 'continues'],
    content: ['open', 'continues'],
    end: ['none', 'ends'],
    'foreign-end': ['open', 'stray'],
    gone: ['none', 'ends'],
  },
};

/** A text or a thought, or a bracket around others. */
export type TextState = 'new' | 'open' | 'ended';
/** `whole`: the complete text so far. `cut`: its turn, speaker or process has ended. */
type TextInput = 'start' | 'delta' | 'whole' | 'end' | 'cut';

const TEXT: Table<TextState, TextInput> = {
  new: {
    start: ['open', 'begins'],
    delta: ['open', 'begins'],
    whole: ['open', 'begins'],
    end: ['new', 'stray'],
    cut: ['new', 'stray'],
  },
  open: {
    start: ['open', 'repeats'],
    delta: ['open', 'continues'],
    whole: ['open', 'continues'],
    end: ['ended', 'ends'],
    cut: ['ended', 'ends'],
  },
  ended: {
    start: ['ended', 'late'],
    delta: ['ended', 'late'],
    // The final text replaces the shown one.
    whole: ['ended', 'corrects'],
    end: ['ended', 'repeats'],
    cut: ['ended', 'repeats'],
  },
};

/**
 * A tool call. `closed`: the arguments are complete and the call runs. `left`: its turn, speaker or process ended without
 * a result, which may still arrive.
 */
export type CallState = 'new' | 'open' | 'closed' | 'left' | 'answered';
type CallInput = 'start' | 'args' | 'end' | 'result' | 'cut';

const CALL: Table<CallState, CallInput> = {
  new: {
    start: ['open', 'begins'],
    args: ['new', 'stray'],
    end: ['new', 'stray'],
    result: ['new', 'stray'],
    cut: ['new', 'stray'],
  },
  open: {
    start: ['open', 'repeats'],
    args: ['open', 'continues'],
    end: ['closed', 'ends'],
    result: ['answered', 'ends'],
    cut: ['left', 'ends'],
  },
  closed: {
    start: ['closed', 'repeats'],
    args: ['closed', 'late'],
    end: ['closed', 'repeats'],
    result: ['answered', 'continues'],
    cut: ['left', 'ends'],
  },
  left: {
    // The agent reuses the id.
    start: ['left', 'late'],
    args: ['left', 'late'],
    end: ['left', 'repeats'],
    result: ['answered', 'continues'],
    cut: ['left', 'repeats'],
  },
  answered: {
    start: ['answered', 'late'],
    args: ['answered', 'late'],
    end: ['answered', 'repeats'],
    result: ['answered', 'repeats'],
    cut: ['answered', 'repeats'],
  },
};

/**
 * A run of a background task. `hidden`: it runs in the foreground of its call, which shows it. `presumed`: its end was
 * inferred, so a later report counts.
 */
type TaskState = 'new' | 'hidden' | 'running' | 'presumed' | 'ended';
type TaskInput = 'start' | 'hide' | 'report' | 'end' | 'presume';

const TASK: Table<TaskState, TaskInput> = {
  new: {
    start: ['running', 'begins'],
    hide: ['hidden', 'stray'],
    report: ['new', 'stray'],
    // Its start was lost.
    end: ['ended', 'ends'],
    presume: ['new', 'stray'],
  },
  hidden: {
    // Moved to the background.
    start: ['running', 'begins'],
    hide: ['hidden', 'repeats'],
    report: ['hidden', 'stray'],
    end: ['hidden', 'stray'],
    presume: ['hidden', 'stray'],
  },
  running: {
    start: ['running', 'repeats'],
    hide: ['running', 'repeats'],
    report: ['running', 'continues'],
    end: ['ended', 'ends'],
    presume: ['presumed', 'ends'],
  },
  presumed: {
    start: ['running', 'corrects'],
    hide: ['presumed', 'late'],
    report: ['presumed', 'late'],
    end: ['ended', 'corrects'],
    presume: ['presumed', 'repeats'],
  },
  ended: {
    start: ['ended', 'repeats'],
    hide: ['ended', 'repeats'],
    report: ['ended', 'late'],
    end: ['ended', 'repeats'],
    presume: ['ended', 'repeats'],
  },
};

/** A permission or question. `passed`: the agent continued without a visible answer; one may still be reported. */
type RequestState = 'new' | 'open' | 'passed' | 'resolved';
type RequestInput = 'ask' | 'pass' | 'answer' | 'cut';

const REQUEST: Table<RequestState, RequestInput> = {
  new: {
    ask: ['open', 'begins'],
    pass: ['new', 'stray'],
    answer: ['new', 'stray'],
    cut: ['new', 'stray'],
  },
  open: {
    ask: ['open', 'repeats'],
    pass: ['passed', 'ends'],
    answer: ['resolved', 'ends'],
    cut: ['resolved', 'ends'],
  },
  passed: {
    ask: ['open', 'corrects'],
    pass: ['passed', 'repeats'],
    answer: ['resolved', 'corrects'],
    cut: ['resolved', 'repeats'],
  },
  resolved: {
    // The agent may reuse the id.
    ask: ['open', 'begins'],
    pass: ['resolved', 'repeats'],
    answer: ['resolved', 'repeats'],
    cut: ['resolved', 'repeats'],
  },
};

/** `bracket`: a step, the work of a subagent, or a span of reasoning. */
export const GRAMMAR = {
  turn: TURN,
  text: TEXT,
  thought: TEXT,
  call: CALL,
  task: TASK,
  request: REQUEST,
  bracket: TEXT,
} as const;

export type Kind = keyof typeof GRAMMAR;
export type StateOf<K extends Kind> = keyof (typeof GRAMMAR)[K] & string;
export type InputOf<K extends Kind> = {
  turn: TurnInput;
  text: TextInput;
  thought: TextInput;
  call: CallInput;
  task: TaskInput;
  request: RequestInput;
  bracket: Extract<TextInput, 'start' | 'end'>;
}[K];

/** The open states. An inferred end counts as an end. */
export const OPEN: { readonly [K in Kind]: ReadonlySet<StateOf<K>> } = {
  turn: new Set(['held', 'open'] as const),
  text: new Set(['open'] as const),
  thought: new Set(['open'] as const),
  call: new Set(['open', 'closed'] as const),
  task: new Set(['running'] as const),
  request: new Set(['open'] as const),
  bracket: new Set(['open'] as const),
};

interface Entry<K extends Kind, About> {
  state: StateOf<K>;
  about: About;
}

/**
 * The entities of one kind in a session, each with its state in the grammar and its owner's data.
 *
 * Failure: bounded. The oldest ended entities are forgotten. Once `mostOpen` are open, `crowded` names the one that the
 * owner must end before another begins.
 *
 * @example
 * const calls = new Entities('call', { mostOpen: 512, mostEnded: 512 });
 * calls.take('toolu_1', 'start', { name: 'Bash' }); // 'begins'
 * calls.take('toolu_1', 'result');                  // 'ends'
 * calls.take('toolu_1', 'result');                  // 'repeats'
 */
export class Entities<K extends Kind, About = undefined> {
  readonly #table: Record<string, Record<string, readonly [string, Verdict]>>;
  readonly #isOpen: ReadonlySet<string>;
  readonly #initial: StateOf<K>;
  readonly #most: { open: number; ended: number };
  readonly #open = new Map<string, Entry<K, About>>();
  readonly #ended = new Map<string, Entry<K, About>>();

  constructor(kind: K, { mostOpen, mostEnded }: { mostOpen: number; mostEnded: number }) {
    this.#table = GRAMMAR[kind];
    this.#isOpen = OPEN[kind];
    this.#initial = Object.keys(GRAMMAR[kind])[0] as StateOf<K>;
    this.#most = { open: mostOpen, ended: mostEnded };
  }

  /** Open ids, oldest first. */
  get open(): string[] {
    return [...this.#open.keys()];
  }

  /** Open entities with their data, oldest first. */
  entries(): [id: string, about: About][] {
    return [...this.#open].map(([id, { about }]) => [id, about]);
  }

  /** Data of all known entities, open and ended. */
  *all(): Generator<About> {
    for (const { about } of this.#open.values()) yield about;
    for (const { about } of this.#ended.values()) yield about;
  }

  /** The open entity that must end before another can begin; null while there is room. */
  get crowded(): string | null {
    return this.#open.size < this.#most.open ? null : (this.#open.keys().next().value ?? null);
  }

  stateOf(id: string): StateOf<K> {
    return this.#find(id)?.state ?? this.#initial;
  }

  about(id: string): About | undefined {
    return this.#find(id)?.about;
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Applies an input. @param about new data; unchanged by default */
  take(id: string, input: InputOf<K>, about?: About): Verdict {
    const known = this.#find(id);
    const [next, verdict] = this.#step(known?.state ?? this.#initial, input);
    if (known === undefined && next === this.#initial) return verdict;
    this.#put(id, { state: next, about: about === undefined ? (known?.about as About) : about });
    return verdict;
  }

  /** The verdict on an input, without applying it. */
  verdict(id: string, input: InputOf<K>): Verdict {
    return this.#step(this.stateOf(id), input)[1];
  }

  #step(state: StateOf<K>, input: InputOf<K>): readonly [StateOf<K>, Verdict] {
    const row = this.#table[state] as Record<string, readonly [string, Verdict]>;
    return row[input] as readonly [StateOf<K>, Verdict];
  }

  /** Ids of remembered ended entities, oldest first. */
  get ended(): string[] {
    return [...this.#ended.keys()];
  }

  /** Forgets an entity, so that its id counts as new. */
  forget(id: string): void {
    this.#open.delete(id);
    this.#ended.delete(id);
  }

  #find(id: string): Entry<K, About> | undefined {
    return this.#open.get(id) ?? this.#ended.get(id);
  }

  #put(id: string, entry: Entry<K, About>): void {
    if (this.#isOpen.has(entry.state)) {
      this.#ended.delete(id);
      this.#open.set(id, entry);
      return;
    }
    this.#open.delete(id);
    this.#ended.set(id, entry);
    if (this.#ended.size > this.#most.ended) this.#ended.delete(this.#ended.keys().next().value as string);
  }
}

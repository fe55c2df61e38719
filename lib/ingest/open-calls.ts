import { parsedArgs } from '@/lib/projections/parsed-args';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { contentText } from '@/lib/protocol/event-fields';
import { textOf } from '@/lib/protocol/fields';
import { interludeOf } from '@/lib/protocol/interlude-metadata';
import { Entities } from '@/lib/protocol/lifecycle/entities';

/** The tool by which an agent asks a person. */
export const QUESTION_TOOL = 'AskUserQuestion';

/** Most calls of a run that are remembered until they have a result; those that ask a person stay longest. */
const MAX_CALLS = 16;
/** Most text of the arguments of one call, and of all of them, in UTF-16 code units: beyond it a request has no input. */
const MAX_ARGS = 32 * 1024;
const MAX_ALL_ARGS = 2 * MAX_ARGS;
/** Most calls that are remembered for having been asked about. */
const MAX_SETTLED = 64;

export interface Call {
  id: string;
  name: string;
  /** Its arguments so far; null if they are too long. */
  args: string | null;
}

/** What is remembered of calls between batches. What is empty is left out. */
export interface CallMemory {
  /** Calls of the open run that have no result yet. */
  calls?: Call[];
  /** Calls about which nothing more is to be asked: their agent told of the request itself, or somebody answered it. */
  settled?: string[];
}

type About = Omit<Call, 'id'>;

/** The calls of a run that have no result yet, with their arguments, within bounds. */
export class OpenCalls {
  /** One about which nothing more is to be asked counts as answered. */
  readonly #calls = new Entities<'call', About>('call', { mostOpen: MAX_CALLS, mostEnded: MAX_SETTLED });

  constructor({ calls = [], settled = [] }: CallMemory) {
    for (const { id, ...about } of calls) this.#calls.take(id, 'start', about);
    for (const id of settled) this.settle(id);
  }

  get memory(): Required<CallMemory> {
    return { calls: this.#all(), settled: this.#calls.ended };
  }

  /** Those that ask a person. */
  get questions(): readonly Call[] {
    return this.#all().filter(isQuestion);
  }

  get(id: string): Call | undefined {
    const about = this.#calls.isOpen(id) ? this.#calls.about(id) : undefined;
    return about && { id, ...about };
  }

  begin(id: string, name: string | null): void {
    if (name === null || this.#calls.verdict(id, 'start') === 'late') return;
    this.end(id);
    const crowded = this.#calls.crowded;
    if (crowded !== null) this.end(this.#all().find((call) => !isQuestion(call))?.id ?? crowded);
    this.#calls.take(id, 'start', { name, args: '' });
  }

  addArgs(id: string, event: AgUiEvent): void {
    const call = this.get(id);
    if (call === undefined) return;
    const delta = contentText(event.delta);
    if (interludeOf(event).whole === true) this.#putArgs(call, delta);
    else this.#putArgs(call, call.args === null ? null : call.args + delta);
  }

  /** A chunk begins its call, or adds to it. */
  continue(id: string, event: AgUiEvent): void {
    if (!this.#calls.isOpen(id)) this.begin(id, textOf(event.toolCallName));
    this.addArgs(id, event);
  }

  /** Its result has come, which another call may follow under the same id. */
  end(id: string): void {
    if (this.#calls.isOpen(id)) this.#calls.forget(id);
  }

  /** The run has ended. */
  clear(): void {
    for (const id of this.#calls.open) this.end(id);
  }

  /** Nothing more is to be asked about it. */
  settle(id: string): void {
    if (this.#calls.stateOf(id) === 'new') this.#calls.take(id, 'start', { name: '', args: null });
    this.#calls.take(id, 'result');
  }

  /** Somebody has answered questions before their run ended. */
  settleQuestions(isAnswered: (call: Call) => boolean): void {
    for (const { id } of this.questions.filter(isAnswered)) this.settle(id);
  }

  #all(): Call[] {
    return this.#calls.entries().map(([id, about]) => ({ id, ...about }));
  }

  #putArgs({ id, name }: Call, args: string | null): void {
    const others = this.#all().reduce((sum, one) => (one.id === id ? sum : sum + (one.args?.length ?? 0)), 0);
    const isTooLong = args !== null && (args.length > MAX_ARGS || args.length + others > MAX_ALL_ARGS);
    this.#calls.take(id, 'args', { name, args: isTooLong ? null : args });
  }
}

export function inputOf({ args }: Call): unknown {
  return args === null ? null : parsedArgs(args);
}

function isQuestion({ name }: Call): boolean {
  return name === QUESTION_TOOL;
}

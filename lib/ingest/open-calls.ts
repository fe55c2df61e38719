import { contentText } from '@/lib/projections/event-fields';
import { interludeOf } from '@/lib/projections/interlude-metadata';
import { parsedArgs } from '@/lib/projections/parsed-args';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { textOf } from '@/lib/protocol/fields';

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

/** The calls of a run that have no result yet, with their arguments, within bounds. */
export class OpenCalls {
  #calls: Call[];
  #settled: string[];

  constructor({ calls = [], settled = [] }: CallMemory) {
    this.#calls = [...calls];
    this.#settled = [...settled];
  }

  get memory(): Required<CallMemory> {
    return { calls: this.#calls, settled: this.#settled };
  }

  /** Those that ask a person. */
  get questions(): readonly Call[] {
    return this.#calls.filter(isQuestion);
  }

  get(id: string): Call | undefined {
    return this.#calls.find((call) => call.id === id);
  }

  begin(id: string, name: string | null): void {
    if (name === null || this.#settled.includes(id)) return;
    this.end(id);
    if (this.#calls.length >= MAX_CALLS) {
      const first = this.#calls.findIndex((call) => !isQuestion(call));
      this.#calls.splice(Math.max(0, first), 1);
    }
    this.#calls.push({ id, name, args: '' });
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
    if (this.get(id) === undefined) this.begin(id, textOf(event.toolCallName));
    this.addArgs(id, event);
  }

  end(id: string): void {
    this.#calls = this.#calls.filter((call) => call.id !== id);
  }

  /** The run has ended. */
  clear(): void {
    this.#calls = [];
  }

  /** Nothing more is to be asked about it. */
  settle(id: string): void {
    this.end(id);
    if (!this.#settled.includes(id)) this.#settled = [...this.#settled, id].slice(-MAX_SETTLED);
  }

  /** Somebody has answered questions before their run ended. */
  settleQuestions(isAnswered: (call: Call) => boolean): void {
    for (const { id } of this.questions.filter(isAnswered)) this.settle(id);
  }

  #putArgs(call: Call, args: string | null): void {
    const others = this.#calls.reduce((sum, one) => (one === call ? sum : sum + (one.args?.length ?? 0)), 0);
    const isTooLong = args !== null && (args.length > MAX_ARGS || args.length + others > MAX_ALL_ARGS);
    const changed = { ...call, args: isTooLong ? null : args };
    this.#calls = this.#calls.map((one) => (one === call ? changed : one));
  }
}

export function inputOf({ args }: Call): unknown {
  return args === null ? null : parsedArgs(args);
}

function isQuestion({ name }: Call): boolean {
  return name === QUESTION_TOOL;
}

import type { FileEdit } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, isObject, numberOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { remember } from '../remember';
import { withCut } from '../writer/long-text';
import type { SessionWriter } from '../writer/session-writer';
import type { Speaker } from '../writer/speaker';
import { callContent, outputText } from './content';

export interface ToolCall {
  /** As it is called in the log: the agent's id, unless an earlier call had that. */
  id: string;
  name: string;
  title: string;
  kind: string | null;
  /** The task of the subagent that makes it; null: the agent itself. */
  taskId: string | null;
  edits: FileEdit[];
  rawInput: unknown;
  /** The output of its command so far, where the agent sends it piece by piece. */
  output: string;
  /** Characters of the output beyond MAX_OUTPUT. */
  cutOutput: number;
  /** Why it was not let run. */
  refusal: string | null;
}

/** How a call ended. */
export interface CallEnd {
  call: ToolCall;
  isError: boolean;
  text: string;
  rawOutput: unknown;
  exitCode: number | null;
  /** It was made to run a command in the background, by the agent's own tool for commands. */
  isBackground: boolean;
}

const MAX_CALLS = 512;
const MAX_NAME = 200;
const MAX_OUTPUT = 256 * 1024;

/**
 * The tool calls of a session. A call first shows up as `tool_call`, as `tool_call_update` or in a permission, and
 * each says only what is new; its input may be empty first, or never come, and not every call ends.
 *
 * @see ACP v1, ToolCall, ToolCallUpdate
 */
export class Calls {
  readonly #writer: SessionWriter;
  /** By the agent's ids. */
  readonly #calls = new Map<string, ToolCall>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  get(id: string): ToolCall | undefined {
    return this.#calls.get(id);
  }

  /** Those of the agent itself that have not ended. */
  get open(): ToolCall[] {
    const open = new Set(this.#writer.speaker().openCalls);
    return [...this.#calls.values()].filter(({ id, taskId }) => taskId === null && open.has(id));
  }

  /** Its turn ended before it. */
  isLeft(call: ToolCall): boolean {
    return this.speaker(call).callState(call.id) === 'left';
  }

  speaker({ taskId }: ToolCall): Speaker {
    return this.#writer.speaker(taskId);
  }

  /** @returns its end, if it ended with this */
  heard(id: string, update: Fields, taskId: string | null): CallEnd | null {
    const speaker = this.#writer.speaker(taskId);
    const name = nameOf(update);
    const shown = speaker.call(id, name, { isStart: isStart(update) });
    const known = this.#calls.get(id);
    const call = known?.id === shown ? known : this.#begin(id, { id: shown, name, taskId });
    const { title, kind, rawInput, content, rawOutput, status, _meta } = update;
    call.title = textOf(title) ?? call.title;
    call.kind = textOf(kind) ?? call.kind;
    if (isObject(rawInput) ? Object.keys(rawInput).length > 0 : rawInput !== undefined && rawInput !== null)
      call.rawInput = rawInput;
    const { text, edits } = callContent(content);
    if (edits.length > 0) call.edits = edits;
    if (speaker.callState(shown) === 'answered') return null;
    addOutput(call, terminalOutput(_meta));
    if (status === 'in_progress') call.refusal = null;
    const isOver = status === 'completed' || status === 'failed';
    if (call.rawInput !== undefined) speaker.args(call.id, call.rawInput);
    else if ((isOver || status === 'in_progress') && call.title !== call.name)
      speaker.args(call.id, { title: call.title });
    if (!isOver) return null;
    const plain = text === '' && call.edits.length === 0 ? outputText(rawOutput) : text;
    const said = call.output === '' ? plain : withCut(call.output, call.cutOutput);
    const { is_background, run_in_background } = fieldsOf(call.rawInput);
    const isBackground = call.kind === 'execute' && (is_background === true || run_in_background === true);
    const { exit_code: exitCode } = { ...fieldsOf(rawOutput), ...fieldsOf(fieldsOf(_meta).terminal_exit) };
    return { call, isError: status === 'failed', text: said, rawOutput, exitCode: numberOf(exitCode), isBackground };
  }

  /** Writes its result. */
  end({ call, isError, text }: Pick<CallEnd, 'call' | 'isError' | 'text'>): void {
    this.speaker(call).result(call.id, text, { isError, edits: call.edits });
    call.edits = [];
    [call.output, call.cutOutput] = ['', 0];
    call.rawInput = undefined;
  }

  /** A person did not let it run. Most agents say so in its result; for the others this does. */
  refused(callId: string, why: string): void {
    for (const call of this.open) if (call.id === callId) call.refusal = why;
  }

  /** The turn is about to end: calls that were not let run have ended. */
  endRefused(): void {
    for (const call of this.open) {
      if (call.refusal !== null) this.end({ call, isError: true, text: call.refusal });
    }
  }

  #begin(id: string, begun: Pick<ToolCall, 'id' | 'name' | 'taskId'>): ToolCall {
    const call: ToolCall = {
      ...begun,
      title: '',
      kind: null,
      edits: [],
      rawInput: undefined,
      output: '',
      cutOutput: 0,
      refusal: null,
    };
    remember(this.#calls, id, call, MAX_CALLS);
    return call;
  }
}

/** Some models count their calls anew, and an id of before is that of another call. */
function isStart({ sessionUpdate, status }: Fields): boolean {
  return sessionUpdate === 'tool_call' && (status === 'pending' || status === 'in_progress');
}

/** What follows a cut is cut, too. */
function addOutput(call: ToolCall, more: string): void {
  const all = call.output + more;
  const kept = call.cutOutput > 0 ? call.output : truncateText(all, MAX_OUTPUT);
  call.cutOutput += all.length - kept.length;
  call.output = kept;
}

/** More output of a command, for clients that declare `terminal_output_delta`. */
function terminalOutput(meta: unknown): string {
  const { terminal_output_delta, terminal_output } = fieldsOf(meta);
  const { data } = fieldsOf(terminal_output_delta ?? terminal_output);
  return typeof data === 'string' ? data : '';
}

/** The tool's own name where the agent gives it; else what kind it is: titles tend to be made of what it is called with. */
function nameOf({ name, kind, title, _meta }: Fields): string {
  const meta = fieldsOf(_meta);
  const given = textOf(name) ?? textOf(fieldsOf(meta.claudeCode).toolName) ?? textOf(meta.toolName);
  const word = /^[\w-]{1,40}$/.exec(textOf(title) ?? '')?.[0];
  const ofKind = kind === 'other' ? null : textOf(kind);
  return truncateText(given ?? word ?? ofKind ?? textOf(title) ?? 'tool', MAX_NAME);
}

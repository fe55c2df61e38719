import { type Fields, fieldsOf, isObject, numberOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../wire';
import type { PartAssembler } from '../writer/part-assembler';
import type { SessionWriter } from '../writer/session-writer';
import { withTruncationNote } from '../writer/size-limits';
import { callContent, outputText, type ToolCall } from './content';

export interface CallEnd {
  call: ToolCall;
  isError: boolean;
  text: string;
  rawOutput: unknown;
  exitCode: number | null;
  /** True if the agent's command tool was asked to run in the background. */
  isBackground: boolean;
}

const MAX_CALLS = 512;
const MAX_NAME = 200;
const MAX_OUTPUT = 256 * 1024;

/**
 * The tool calls of a session. A call first appears as `tool_call`, `tool_call_update` or in a permission, each with
 * only the changes. Its input may start empty or never come, and not every call ends.
 *
 * @see ACP v1, ToolCall, ToolCallUpdate
 */
export class Calls {
  readonly #writer: SessionWriter;
  readonly #calls = new Map<string, ToolCall>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  get(id: string): ToolCall | undefined {
    return this.#calls.get(id);
  }

  /** The agent's own open calls. */
  get open(): ToolCall[] {
    const open = new Set(this.#writer.parts().openCalls);
    return [...this.#calls.values()].filter(({ id, taskId }) => taskId === null && open.has(id));
  }

  /** True if the call's turn ended first. */
  isLate(call: ToolCall): boolean {
    return this.parts(call).callState(call.id) === 'left';
  }

  parts({ taskId }: ToolCall): PartAssembler {
    return this.#writer.parts(taskId);
  }

  /** @returns the end of the call, if the update ends it */
  apply(id: string, update: Fields, taskId: string | null): CallEnd | null {
    const parts = this.#writer.parts(taskId);
    const name = nameOf(update);
    const shown = parts.startCall(id, name, { isStart: isStart(update) });
    const known = this.#calls.get(id);
    const call = known?.id === shown ? known : this.#begin(id, { id: shown, name, taskId });
    const { title, kind, rawInput, content, rawOutput, status, _meta } = update;
    call.title = textOf(title) ?? call.title;
    call.kind = textOf(kind) ?? call.kind;
    if (isObject(rawInput) ? Object.keys(rawInput).length > 0 : rawInput !== undefined && rawInput !== null)
      call.rawInput = rawInput;
    const { text, edits } = callContent(content);
    if (edits.length > 0) call.edits = edits;
    if (parts.callState(shown) === 'answered') return null;
    addOutput(call, terminalOutput(_meta));
    if (status === 'in_progress') call.refusal = null;
    const isOver = status === 'completed' || status === 'failed';
    if (call.rawInput !== undefined) parts.setArgs(call.id, call.rawInput);
    else if ((isOver || status === 'in_progress') && call.title !== call.name)
      parts.setArgs(call.id, { title: call.title });
    if (!isOver) return null;
    const plain = text === '' && call.edits.length === 0 ? outputText(rawOutput) : text;
    const output = call.output === '' ? plain : withTruncationNote(call.output, call.cutOutput);
    const { is_background, run_in_background } = fieldsOf(call.rawInput);
    const isBackground = call.kind === 'execute' && (is_background === true || run_in_background === true);
    const { exit_code: exitCode } = { ...fieldsOf(rawOutput), ...fieldsOf(fieldsOf(_meta).terminal_exit) };
    return { call, isError: status === 'failed', text: output, rawOutput, exitCode: numberOf(exitCode), isBackground };
  }

  end({ call, isError, text }: Pick<CallEnd, 'call' | 'isError' | 'text'>): void {
    this.parts(call).setResult(call.id, text, { isError, edits: call.edits });
    call.edits = [];
    [call.output, call.cutOutput] = ['', 0];
    call.rawInput = undefined;
  }

  /** Records a refusal. Most agents repeat it in the result; `endRefused` writes it for the others. */
  refused(callId: string, reason: string): void {
    for (const call of this.open) if (call.id === callId) call.refusal = reason;
  }

  /** Ends refused calls before the turn ends. */
  endRefused(): void {
    for (const call of this.open) {
      if (call.refusal !== null) this.end({ call, isError: true, text: call.refusal });
    }
  }

  #begin(id: string, start: Pick<ToolCall, 'id' | 'name' | 'taskId'>): ToolCall {
    const call: ToolCall = {
      ...start,
      title: '',
      kind: null,
      edits: [],
      rawInput: undefined,
      output: '',
      cutOutput: 0,
      refusal: null,
    };
    setBounded(this.#calls, id, call, MAX_CALLS);
    return call;
  }
}

/** True if the update starts a call. Some models restart call ids, so a known id may mean a new call. */
function isStart({ sessionUpdate, status }: Fields): boolean {
  return sessionUpdate === 'tool_call' && (status === 'pending' || status === 'in_progress');
}

/** Appends output up to the limit. Once output has been cut, all further output is cut too. */
function addOutput(call: ToolCall, more: string): void {
  const all = call.output + more;
  const kept = call.cutOutput > 0 ? call.output : truncateText(all, MAX_OUTPUT);
  call.cutOutput += all.length - kept.length;
  call.output = kept;
}

/** Streamed command output, for clients with `terminal_output_delta`. */
function terminalOutput(meta: unknown): string {
  const { terminal_output_delta, terminal_output } = fieldsOf(meta);
  const { data } = fieldsOf(terminal_output_delta ?? terminal_output);
  return typeof data === 'string' ? data : '';
}

/** The tool's name, else its kind: titles usually contain the input. */
function nameOf({ name, kind, title, _meta }: Fields): string {
  const meta = fieldsOf(_meta);
  const reported = textOf(name) ?? textOf(fieldsOf(meta.claudeCode).toolName) ?? textOf(meta.toolName);
  const word = /^[\w-]{1,40}$/.exec(textOf(title) ?? '')?.[0];
  const ofKind = kind === 'other' ? null : textOf(kind);
  return truncateText(reported ?? word ?? ofKind ?? textOf(title) ?? 'tool', MAX_NAME);
}

import { type Fields, fieldsOf, isObject, listOf, textOf } from '@interlude/protocol/fields';
import type { EmittedEvent, WireAdapter, WireAdapterOptions, WireEnd, WireFrame } from '../wire';
import { planEntry } from '../writer/part-events';
import { SessionWriter } from '../writer/session-writer';
import { boundFrame, boundValue } from '../writer/size-limits';
import { callOf, errorText, type ItemCall } from './items';

/**
 * Translates the output of `codex exec --json`: the turns of one thread. A command that outlives its turn is never
 * mentioned again, so its end is unknown.
 *
 * @see `codex exec --json`, @openai/codex 0.171.0
 */
export class ExecAdapter implements WireAdapter {
  readonly dueAt = null;
  readonly #options: WireAdapterOptions;
  #known: SessionWriter | null = null;

  constructor(options: WireAdapterOptions) {
    this.#options = options;
  }

  /** The first line names the thread; output without one gets a default session. */
  get #writer(): SessionWriter {
    this.#known ??= this.#writerOf('exec');
    return this.#known;
  }

  read({ dir, msg: raw }: WireFrame, now: number): EmittedEvent[] {
    const msg = boundFrame(raw, true);
    if (dir !== 'in' || !isObject(msg)) return [];
    const before = this.#known?.drain() ?? [];
    if (msg.type === 'thread.started') this.#known = this.#writerOf(textOf(msg.thread_id) ?? 'exec');
    this.#writer.at(now);
    this.#line(msg);
    return [...before, ...this.#writer.drain()];
  }

  elapsed(): EmittedEvent[] {
    return [];
  }

  ended(end: WireEnd, now: number): EmittedEvent[] {
    this.#writer.at(now);
    this.#writer.end(end);
    return this.#writer.drain();
  }

  #line(msg: Fields): void {
    switch (msg.type) {
      case 'thread.started':
        return;
      case 'turn.started':
        // The prompt is on the command line.
        this.#writer.begin({ kind: 'user', userMessageIds: [] });
        return;
      case 'turn.completed':
        for (const id of this.#writer.parts().openCalls) this.#writer.parts().setResult(id, NOT_WAITED_FOR);
        this.#writer.finish({ kind: 'success' }, { result: { usage: fieldsOf(msg.usage) } });
        return;
      case 'turn.failed':
        this.#writer.finish({ kind: 'failed', ...errorText(msg.error) });
        return;
      case 'item.started':
      case 'item.updated':
        this.#item(fieldsOf(msg.item), false);
        return;
      case 'item.completed':
        this.#item(fieldsOf(msg.item), true);
        return;
      default:
        this.#writer.custom(`codex:${textOf(msg.type) ?? 'unknown'}`, boundValue(msg));
        return;
    }
  }

  #item(item: Fields, isComplete: boolean): void {
    const id = textOf(item.id);
    if (id === null) return;
    // Ids restart from 0 in each process.
    const name = `${this.#writer.turn?.runId ?? this.#writer.sessionId}/${id}`;
    const parts = this.#writer.parts();
    if (item.type === 'todo_list') {
      const steps = listOf(item.items).map(fieldsOf);
      this.#writer.plan(
        name,
        steps.map(({ text, completed }) => planEntry(text, completed === true ? 'completed' : 'pending')),
      );
      return;
    }
    const call = callOf(asAppServerItem(item)) ?? (WORDS.has(item.type) ? null : unknownCall(item));
    if (call !== null) {
      parts.startCall(name, call.name);
      parts.setArgs(name, call.args);
      if (isComplete) parts.setResult(name, call.result, { isError: call.isError, edits: call.edits });
      return;
    }
    const text = textOf(item.text) ?? textOf(item.message) ?? '';
    if (item.type === 'agent_message') parts.setText('text', name, text);
    else if (item.type === 'reasoning') parts.setText('thought', name, text);
    else this.#writer.notice(text, 'warning');
    if (isComplete) parts.endText();
  }

  #writerOf(threadId: string): SessionWriter {
    const { sessionOf, newRunId } = this.#options;
    return new SessionWriter({ sessionId: sessionOf(threadId), newRunId });
  }
}

const NOT_WAITED_FOR = 'The turn did not wait for it, and “codex exec” never reports its outcome.';

const WORDS: ReadonlySet<unknown> = new Set(['agent_message', 'reasoning', 'error']);

/** An item of a newer Codex is shown as a call with all its fields. */
function unknownCall({ id: _, type, tool, status, result, error, ...args }: Fields): ItemCall {
  const isError = status === 'failed' || isObject(error);
  const output = isError
    ? errorText(error).message
    : (textOf(result) ?? (result === undefined ? '' : JSON.stringify(result)));
  return {
    name: textOf(tool) ?? textOf(type) ?? 'unknown',
    args: boundValue(args),
    result: output,
    isError,
    edits: [],
  };
}

/** Converts an item to the app-server's format. */
function asAppServerItem(item: Fields): Fields {
  const type = KINDS.get(item.type);
  if (type === undefined) return {};
  const { aggregated_output: aggregatedOutput, exit_code: exitCode, ...rest } = item;
  return { ...rest, type, aggregatedOutput, exitCode };
}

const KINDS = new Map<unknown, string>([
  ['command_execution', 'commandExecution'],
  ['file_change', 'fileChange'],
  ['mcp_tool_call', 'mcpToolCall'],
  ['web_search', 'webSearch'],
]);

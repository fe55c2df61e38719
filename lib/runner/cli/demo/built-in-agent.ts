import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextRound, setTimeout as pause } from 'node:timers/promises';
import type {
  ClaudeQuery,
  ClaudeSdk,
  PermissionResult,
  QueryOptions,
  UserMessage,
} from '../../sources/claude/claude-sdk';
import { answer, type Heard } from './assistant-script';
import type { Block } from './scripted-model.mjs';

/**
 * The demo's answering agent where Claude Code is not installed: it plays the same script and speaks as the Agent SDK
 * speaks, so that the runner, the adapter and the way of every message are those of a real agent. It has two tools, a
 * shell command in the background and a question, and runs neither before a person has said so.
 *
 * Ordering: one turn at a time; what ended in the background gets its turn before what people wrote meanwhile.
 * Failure: an interrupt breaks off what is said or asked, and spares what runs in the background.
 *
 * @see `@anthropic-ai/claude-agent-sdk` 0.3.332, whose messages it sends
 */
export interface BuiltInOptions {
  /** Between two pieces of a text. */
  paceMs: number;
  /** Where the output of its commands goes. */
  outputDir: string;
}

export function builtInAgent(how: BuiltInOptions): ClaudeSdk {
  return { query: ({ prompt, options }) => new BuiltInAgent(prompt, options, how) };
}

type ToolUse = Block & { id: string; name: string; input: Record<string, unknown> };

interface EndedTask {
  runId: string;
  status: string;
  summary: string;
}

class BuiltInAgent implements ClaudeQuery {
  readonly #options: QueryOptions;
  readonly #how: BuiltInOptions;
  readonly #sessionId: string;
  readonly #said: object[] = [];
  readonly #written: UserMessage[] = [];
  readonly #ended: EndedTask[] = [];
  readonly #tasks = new Map<string, { description: string; runId: string; command: BackgroundCommand }>();
  readonly #stopped = new Set<string>();
  #turn: AbortController | null = null;
  #isClosed = false;
  #speak = () => {};
  #wake = () => {};

  constructor(prompt: AsyncIterable<UserMessage>, options: QueryOptions, how: BuiltInOptions) {
    this.#options = options;
    this.#how = how;
    this.#sessionId = options.resume ?? options.sessionId ?? randomUUID();
    void this.#read(prompt);
    void this.#live();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      for (let next = this.#said.shift(); next !== undefined; next = this.#said.shift()) yield next;
      if (this.#isClosed) return;
      await new Promise<void>((resolve) => {
        this.#speak = resolve;
      });
    }
  }

  async interrupt() {
    this.#turn?.abort();
    return { still_queued: this.#written.map(({ uuid }) => uuid) };
  }

  async stopTask(taskId: string): Promise<void> {
    this.#stopped.add(taskId);
    this.#tasks.get(taskId)?.command.stop();
  }

  close(): void {
    this.#isClosed = true;
    this.#turn?.abort();
    for (const { command } of this.#tasks.values()) command.stop();
    this.#speak();
    this.#wake();
  }

  async #read(prompt: AsyncIterable<UserMessage>): Promise<void> {
    for await (const message of prompt) {
      this.#written.push(message);
      this.#say({ type: 'command_lifecycle', command_uuid: message.uuid, state: 'queued' });
      this.#wake();
    }
  }

  async #live(): Promise<void> {
    while (!this.#isClosed) {
      if (this.#ended.length > 0) await this.#runTurn([], this.#ended.splice(0));
      else if (this.#written.length > 0) await this.#runTurn(this.#written.splice(0), []);
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  async #runTurn(messages: readonly UserMessage[], ended: readonly EndedTask[]): Promise<void> {
    const turn = new AbortController();
    this.#turn = turn;
    const startedAt = Date.now();
    const uuids = messages.map(({ uuid }) => uuid);
    const answers = uuids.length > 0 ? { user_message_uuids: uuids } : {};
    this.#say({ type: 'system', subtype: 'session_state_changed', state: 'running' });
    this.#lifecycle(uuids, 'started');
    const { cwd } = this.#options;
    const about = { cwd, model: 'scripted', tools: ['Bash', 'AskUserQuestion'], permissionMode: 'default' };
    this.#say({ type: 'system', subtype: 'init', ...about, ...answers });
    const text = messages
      .flatMap(({ message }) => message.content.map((part) => (part.type === 'text' ? part.text : '')))
      .join('\n');
    const steps = await this.#answer({ text, results: [], notices: [...ended] }, answers, turn.signal);
    const isBrokenOff = turn.signal.aborted;
    const runId = ended.at(-1)?.runId;
    this.#say({
      type: 'result',
      subtype: isBrokenOff ? 'error_during_execution' : 'success',
      is_error: isBrokenOff,
      terminal_reason: isBrokenOff ? 'aborted_streaming' : 'completed',
      num_turns: steps,
      duration_ms: Date.now() - startedAt,
      ...(runId === undefined ? {} : { origin: { kind: 'task-notification', producer: 'session-task', runId } }),
      ...answers,
    });
    this.#lifecycle(uuids, isBrokenOff ? 'cancelled' : 'completed');
    this.#say({ type: 'system', subtype: 'session_state_changed', state: 'idle' });
    this.#turn = null;
  }

  /** @returns how many times it spoke until it wanted no tool any more, or was broken off */
  async #answer(first: Heard, answers: object, signal: AbortSignal): Promise<number> {
    let heard = first;
    for (let steps = 1; ; steps += 1) {
      this.#say({ type: 'system', subtype: 'status', status: 'requesting', ...answers });
      const calls = await this.#utter(answer(heard), signal);
      const results: Heard['results'] = [];
      for (const call of calls) {
        const result = await this.#use(call, signal);
        results.push({ ...result, tool: call.name });
        const content = [{ type: 'tool_result', tool_use_id: call.id, content: result.text, is_error: result.isError }];
        this.#say({ type: 'user', message: { role: 'user', content }, parent_tool_use_id: null });
      }
      if (results.length === 0 || signal.aborted) return steps;
      heard = { text: '', results, notices: [] };
    }
  }

  /** @returns the tools it wants to use */
  async #utter(blocks: readonly Block[], signal: AbortSignal): Promise<ToolUse[]> {
    const id = `msg_${randomBytes(9).toString('hex')}`;
    const calls: ToolUse[] = [];
    this.#stream({ type: 'message_start', message: { id, role: 'assistant', content: [] } });
    for (const [index, block] of blocks.entries()) {
      const isText = block.type === 'text';
      const whole = isText ? block : { ...block, id: `toolu_${randomBytes(9).toString('hex')}` };
      if (isText) {
        this.#stream({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } });
        for (const piece of String(block.text).match(/\s*\S+(?:\s+\S+)?/g) ?? []) {
          this.#stream({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: piece } });
          await pause(this.#how.paceMs, undefined, { signal }).catch(() => undefined);
          if (signal.aborted) return [];
        }
      } else calls.push(whole as ToolUse);
      this.#say({ type: 'assistant', message: { id, role: 'assistant', content: [whole] }, parent_tool_use_id: null });
      if (isText) this.#stream({ type: 'content_block_stop', index });
    }
    return calls;
  }

  async #use({ id, name, input }: ToolUse, signal: AbortSignal): Promise<{ text: string; isError: boolean }> {
    const { canUseTool } = this.#options;
    // The call stands before what is asked about it.
    while (this.#said.length > 0 && !signal.aborted) await nextRound();
    const verdict: PermissionResult = (await canUseTool?.(name, input, {
      signal,
      toolUseID: id,
      description: input.description,
    })) ?? {
      behavior: 'allow',
      updatedInput: input,
    };
    if (signal.aborted) return { text: 'It was interrupted before it ran.', isError: true };
    if (verdict.behavior === 'deny') return { text: verdict.message, isError: true };
    const given = verdict.updatedInput;
    if (name === 'AskUserQuestion') return { text: `Answered: ${JSON.stringify(given.answers)}`, isError: false };
    return { text: this.#startTask(id, String(given.command), String(given.description)), isError: false };
  }

  #startTask(callId: string, commandLine: string, description: string): string {
    const taskId = `b${randomBytes(4).toString('hex')}`;
    const runId = randomUUID();
    const task = { task_id: taskId, run_id: runId, task_type: 'local_bash', description };
    const outputFile = join(this.#how.outputDir, `${taskId}.output`);
    const { cwd, env } = this.#options;
    const command = startInBackground(commandLine, { cwd, env, outputFile });
    this.#tasks.set(taskId, { description, runId, command });
    this.#say({ type: 'system', subtype: 'task_started', ...task, tool_use_id: callId, is_backgrounded: true });
    void command.ended.then((exitCode) => {
      this.#tasks.delete(taskId);
      const isStopped = this.#stopped.delete(taskId);
      const status = isStopped ? 'stopped' : exitCode === 0 ? 'completed' : 'failed';
      const how = isStopped ? 'was stopped' : endWords(exitCode);
      const summary = `Background command "${description}" ${how}`;
      const about = { task_id: taskId, run_id: runId, tool_use_id: callId, status, summary, output_file: outputFile };
      this.#say({ type: 'system', subtype: 'task_notification', ...about });
      // Whoever stopped it knows.
      if (!isStopped) this.#ended.push({ runId, status, summary });
      this.#wake();
    });
    return `Command running in background with ID: ${taskId}. Output is being written to: ${outputFile}.`;
  }

  #lifecycle(uuids: readonly string[], state: string): void {
    for (const uuid of uuids) this.#say({ type: 'command_lifecycle', command_uuid: uuid, state });
  }

  #stream(event: object): void {
    this.#say({ type: 'stream_event', event, parent_tool_use_id: null });
  }

  #say(message: object): void {
    if (this.#isClosed) return;
    this.#said.push({ ...message, uuid: randomUUID(), session_id: this.#sessionId });
    this.#speak();
  }
}

function endWords(exitCode: number | null): string {
  if (exitCode === 0) return 'completed (exit code 0)';
  return exitCode === null ? 'failed: it was ended' : `failed with exit code ${exitCode}`;
}

interface BackgroundCommand {
  /** Its exit code; null if it was ended, or could not be started. */
  ended: Promise<number | null>;
  stop: () => void;
}

const GROUPS = process.platform !== 'win32';

/** Runs a command through the shell, in a process group of its own, so that `stop` ends what it has started as well. */
function startInBackground(
  command: string,
  { cwd, env, outputFile }: { cwd: string; env: Record<string, string | undefined>; outputFile: string },
): BackgroundCommand {
  mkdirSync(dirname(outputFile), { recursive: true });
  const output = openSync(outputFile, 'w', 0o600);
  const child = spawn(command, {
    shell: true,
    cwd,
    env: env as NodeJS.ProcessEnv,
    stdio: ['ignore', output, output],
    detached: GROUPS,
    windowsHide: true,
  });
  closeSync(output);
  const ended = new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null));
    child.once('exit', (exitCode) => resolve(exitCode));
  });
  return {
    ended,
    stop() {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
      try {
        if (GROUPS) process.kill(-child.pid, 'SIGTERM');
        else child.kill();
      } catch {
        // it has ended just now
      }
    },
  };
}

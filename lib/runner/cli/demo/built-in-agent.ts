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
import { answer, type ScriptInput } from './assistant-script';
import type { Block } from './scripted-model.mjs';

export interface BuiltInOptions {
  /** Pause between two pieces of a text. */
  paceMs: number;
  outputDir: string;
}

/**
 * The demo's answering agent without Claude Code: it plays the same script and sends the messages of the Agent SDK
 * (`@anthropic-ai/claude-agent-sdk` 0.3.332), so that the runner and adapter are the same as for a real agent. Its two
 * tools, a shell command in the background and a question, need permission.
 *
 * Ordering: one turn at a time. The turn for a task that ended comes before the turn for waiting messages.
 * Failure: an interrupt stops texts and requests, but not background commands.
 */
export function builtInAgent(settings: BuiltInOptions): ClaudeSdk {
  return { query: ({ prompt, options }) => new BuiltInAgent(prompt, options, settings) };
}

type ToolUse = Block & { id: string; name: string; input: Record<string, unknown> };

interface EndedTask {
  runId: string;
  status: string;
  summary: string;
}

class BuiltInAgent implements ClaudeQuery {
  readonly #options: QueryOptions;
  readonly #settings: BuiltInOptions;
  readonly #sessionId: string;
  readonly #outgoing: object[] = [];
  readonly #incoming: UserMessage[] = [];
  readonly #ended: EndedTask[] = [];
  readonly #tasks = new Map<string, { description: string; runId: string; command: BackgroundCommand }>();
  readonly #stopped = new Set<string>();
  #turn: AbortController | null = null;
  #isClosed = false;
  #notifyReader = () => {};
  #notifyAgent = () => {};

  constructor(prompt: AsyncIterable<UserMessage>, options: QueryOptions, settings: BuiltInOptions) {
    this.#options = options;
    this.#settings = settings;
    this.#sessionId = options.resume ?? options.sessionId ?? randomUUID();
    void this.#read(prompt);
    void this.#run();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      for (let next = this.#outgoing.shift(); next !== undefined; next = this.#outgoing.shift()) yield next;
      if (this.#isClosed) return;
      await new Promise<void>((resolve) => {
        this.#notifyReader = resolve;
      });
    }
  }

  async interrupt() {
    this.#turn?.abort();
    return { still_queued: this.#incoming.map(({ uuid }) => uuid) };
  }

  async stopTask(taskId: string): Promise<void> {
    this.#stopped.add(taskId);
    this.#tasks.get(taskId)?.command.stop();
  }

  close(): void {
    this.#isClosed = true;
    this.#turn?.abort();
    for (const { command } of this.#tasks.values()) command.stop();
    this.#notifyReader();
    this.#notifyAgent();
  }

  async #read(prompt: AsyncIterable<UserMessage>): Promise<void> {
    for await (const message of prompt) {
      this.#incoming.push(message);
      this.#emit({ type: 'command_lifecycle', command_uuid: message.uuid, state: 'queued' });
      this.#notifyAgent();
    }
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      if (this.#ended.length > 0) await this.#runTurn([], this.#ended.splice(0));
      else if (this.#incoming.length > 0) await this.#runTurn(this.#incoming.splice(0), []);
      else
        await new Promise<void>((resolve) => {
          this.#notifyAgent = resolve;
        });
    }
  }

  async #runTurn(messages: readonly UserMessage[], ended: readonly EndedTask[]): Promise<void> {
    const turn = new AbortController();
    this.#turn = turn;
    const startedAt = Date.now();
    const uuids = messages.map(({ uuid }) => uuid);
    const answers = uuids.length > 0 ? { user_message_uuids: uuids } : {};
    this.#emit({ type: 'system', subtype: 'session_state_changed', state: 'running' });
    this.#lifecycle(uuids, 'started');
    const { cwd } = this.#options;
    const about = { cwd, model: 'scripted', tools: ['Bash', 'AskUserQuestion'], permissionMode: 'default' };
    this.#emit({ type: 'system', subtype: 'init', ...about, ...answers });
    const text = messages
      .flatMap(({ message }) => message.content.map((part) => (part.type === 'text' ? part.text : '')))
      .join('\n');
    const steps = await this.#answer({ text, results: [], notices: [...ended] }, answers, turn.signal);
    const isInterrupted = turn.signal.aborted;
    const runId = ended.at(-1)?.runId;
    this.#emit({
      type: 'result',
      subtype: isInterrupted ? 'error_during_execution' : 'success',
      is_error: isInterrupted,
      terminal_reason: isInterrupted ? 'aborted_streaming' : 'completed',
      num_turns: steps,
      duration_ms: Date.now() - startedAt,
      ...(runId === undefined ? {} : { origin: { kind: 'task-notification', producer: 'session-task', runId } }),
      ...answers,
    });
    this.#lifecycle(uuids, isInterrupted ? 'cancelled' : 'completed');
    this.#emit({ type: 'system', subtype: 'session_state_changed', state: 'idle' });
    this.#turn = null;
  }

  /** @returns the number of model calls, up to the first without a tool or an interrupt */
  async #answer(first: ScriptInput, answers: object, signal: AbortSignal): Promise<number> {
    let input = first;
    for (let steps = 1; ; steps += 1) {
      this.#emit({ type: 'system', subtype: 'status', status: 'requesting', ...answers });
      const calls = await this.#streamBlocks(answer(input), signal);
      const results: ScriptInput['results'] = [];
      for (const call of calls) {
        const result = await this.#use(call, signal);
        results.push({ ...result, tool: call.name });
        const content = [{ type: 'tool_result', tool_use_id: call.id, content: result.text, is_error: result.isError }];
        this.#emit({ type: 'user', message: { role: 'user', content }, parent_tool_use_id: null });
      }
      if (results.length === 0 || signal.aborted) return steps;
      input = { text: '', results, notices: [] };
    }
  }

  /** @returns the tool calls among the blocks */
  async #streamBlocks(blocks: readonly Block[], signal: AbortSignal): Promise<ToolUse[]> {
    const id = `msg_${randomBytes(9).toString('hex')}`;
    const calls: ToolUse[] = [];
    this.#stream({ type: 'message_start', message: { id, role: 'assistant', content: [] } });
    for (const [index, block] of blocks.entries()) {
      const isText = block.type === 'text';
      const content = isText ? block : { ...block, id: `toolu_${randomBytes(9).toString('hex')}` };
      if (isText) {
        this.#stream({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } });
        for (const piece of String(block.text).match(/\s*\S+(?:\s+\S+)?/g) ?? []) {
          this.#stream({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: piece } });
          await pause(this.#settings.paceMs, undefined, { signal }).catch(() => undefined);
          if (signal.aborted) return [];
        }
      } else calls.push(content as ToolUse);
      this.#emit({
        type: 'assistant',
        message: { id, role: 'assistant', content: [content] },
        parent_tool_use_id: null,
      });
      if (isText) this.#stream({ type: 'content_block_stop', index });
    }
    return calls;
  }

  async #use({ id, name, input }: ToolUse, signal: AbortSignal): Promise<{ text: string; isError: boolean }> {
    const { canUseTool } = this.#options;
    // The reader must see the tool call before its permission request.
    while (this.#outgoing.length > 0 && !signal.aborted) await nextRound();
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
    const allowed = verdict.updatedInput;
    if (name === 'AskUserQuestion') return { text: `Answered: ${JSON.stringify(allowed.answers)}`, isError: false };
    return { text: this.#startTask(id, String(allowed.command), String(allowed.description)), isError: false };
  }

  #startTask(callId: string, commandLine: string, description: string): string {
    const taskId = `b${randomBytes(4).toString('hex')}`;
    const runId = randomUUID();
    const task = { task_id: taskId, run_id: runId, task_type: 'local_bash', description };
    const outputFile = join(this.#settings.outputDir, `${taskId}.output`);
    const { cwd, env } = this.#options;
    const command = startInBackground(commandLine, { cwd, env, outputFile });
    this.#tasks.set(taskId, { description, runId, command });
    this.#emit({ type: 'system', subtype: 'task_started', ...task, tool_use_id: callId, is_backgrounded: true });
    void command.ended.then((exitCode) => {
      this.#tasks.delete(taskId);
      const isStopped = this.#stopped.delete(taskId);
      const status = isStopped ? 'stopped' : exitCode === 0 ? 'completed' : 'failed';
      const how = isStopped ? 'was stopped' : endWords(exitCode);
      const summary = `Background command "${description}" ${how}`;
      const about = { task_id: taskId, run_id: runId, tool_use_id: callId, status, summary, output_file: outputFile };
      this.#emit({ type: 'system', subtype: 'task_notification', ...about });
      // A stopped task does not start a turn.
      if (!isStopped) this.#ended.push({ runId, status, summary });
      this.#notifyAgent();
    });
    return `Command running in background with ID: ${taskId}. Output is being written to: ${outputFile}.`;
  }

  #lifecycle(uuids: readonly string[], state: string): void {
    for (const uuid of uuids) this.#emit({ type: 'command_lifecycle', command_uuid: uuid, state });
  }

  #stream(event: object): void {
    this.#emit({ type: 'stream_event', event, parent_tool_use_id: null });
  }

  #emit(message: object): void {
    if (this.#isClosed) return;
    this.#outgoing.push({ ...message, uuid: randomUUID(), session_id: this.#sessionId });
    this.#notifyReader();
  }
}

function endWords(exitCode: number | null): string {
  if (exitCode === 0) return 'completed (exit code 0)';
  return exitCode === null ? 'failed: it was killed' : `failed with exit code ${exitCode}`;
}

interface BackgroundCommand {
  /** The exit code; null if it was killed or could not start. */
  ended: Promise<number | null>;
  stop: () => void;
}

const HAS_PROCESS_GROUPS = process.platform !== 'win32';

/** Runs a shell command in its own process group, so that `stop` also ends its children. */
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
    detached: HAS_PROCESS_GROUPS,
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
        if (HAS_PROCESS_GROUPS) process.kill(-child.pid, 'SIGTERM');
        else child.kill();
      } catch {
        // The process group has just ended.
      }
    },
  };
}

import type { TaskEventValue } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../wire';
import type { SessionWriter, TurnEnd } from '../writer/session-writer';

import type { AgentProfile } from './agent-profiles';
import type { CallEnd, Calls } from './calls';
import type { ClaudeExtras } from './claude-extras';
import type { ToolCall } from './content';

const MAX_DESCRIPTION = 500;
const MAX_PROCESSES = 256;
/** Calls that start no background work: their results are file or page text. */
const ONLY_TEXTS: ReadonlySet<string | null> = new Set(['read', 'search', 'fetch', 'edit', 'delete', 'move']);

/** Detects background tasks in tool calls, the only sign of them in ACP v1. */
export class CallTasks {
  profile: AgentProfile = { limits: [] };
  readonly #writer: SessionWriter;
  readonly #calls: Calls;
  readonly #claude: ClaudeExtras;
  /** Processes of open tasks whose ends the agent does not report, by task. */
  readonly #processes = new Map<string, number>();

  constructor(writer: SessionWriter, calls: Calls, claude: ClaudeExtras) {
    this.#writer = writer;
    this.#calls = calls;
    this.#claude = claude;
  }

  get processes(): number[] {
    return [...this.#processes].flatMap(([id, pid]) => (this.#writer.isRunning(id) ? pid : []));
  }

  /** Ends tasks after the agent lost its session. Only tasks with a known process can still report. */
  forgotten(): void {
    for (const id of this.#writer.openTasks) {
      if (this.#processes.has(id)) continue;
      const error = 'The agent lost its session; the outcome is unknown.';
      this.#writer.taskCompleted({ task_id: id, status: 'lost', error });
    }
  }

  /** Handles the end of a process. @param wasSeen true if it was running before */
  processEnded(pid: unknown, wasSeen: boolean): void {
    for (const [id, one] of this.#processes) {
      if (one !== pid) continue;
      this.#processes.delete(id);
      if (!this.#writer.isRunning(id)) continue;
      if (wasSeen) {
        const summary = `Its process (${pid}) has ended. The agent does not report its exit code.`;
        this.#writer.taskCompleted({ task_id: id, status: 'completed', summary });
      } else {
        const error = `Its process (${pid}) is not on this machine: it has already ended or runs elsewhere.`;
        this.#writer.taskCompleted({ task_id: id, status: 'lost', error });
      }
    }
  }

  /** Task of the subagent that an update is about; null for the agent itself. */
  subagentOf(meta: Fields): string | null {
    const parent = textOf(fieldsOf(meta.claudeCode).parentToolUseId);
    if (parent !== null) return this.#claude.taskOfCall(parent);
    return textOf(fieldsOf(meta['github.com/copilot']).agentId);
  }

  /** Reads claude-agent-acp's metadata about a call that continues in the background. */
  launched(call: ToolCall, { backgroundTaskId, isAsync, agentId, description, outputFile }: Fields): void {
    const id = textOf(backgroundTaskId) ?? (isAsync === true ? textOf(agentId) : null);
    // The result of an MCP tool is not the agent's own report.
    if (id === null || call.name.startsWith('mcp__')) return;
    this.#claude.started(call.id, id);
    if (this.#writer.isRunning(id)) return;
    const task_type = backgroundTaskId === undefined ? 'local_agent' : 'local_bash';
    this.#start(id, call, {
      task_type,
      output_file: textOf(outputFile),
      description: textOf(description) ?? undefined,
    });
  }

  /** Handles the result of a call. @param isLate true if its turn had already ended */
  callEnded({ call, text, rawOutput, exitCode, isError, isBackground }: CallEnd, isLate: boolean): void {
    const { type } = fieldsOf(rawOutput);
    if (isLate && this.#writer.isRunning(call.id)) {
      const status = isError || (exitCode ?? 0) !== 0 ? 'failed' : 'completed';
      this.#writer.taskCompleted({ task_id: call.id, status, exit_code: exitCode });
      return;
    }
    // Foreground output may contain these phrases. An agent that reports its tasks does not use them.
    const isOnlyText = type === 'shell_result' || ONLY_TEXTS.has(call.kind) || this.profile.stopsTasks === true;
    const started = isOnlyText ? null : parseBackgroundStart(text);
    const file = isBackground ? parseOutputFile(text, started?.taskId ?? this.#claude.taskOfCall(call.id)) : null;
    if (started !== null) this.#startedBy(call, started, file);
    else this.#seen(call, text, file);
    this.#claude.callEnded(call.id, isError);
  }

  /** Closes open tasks before a turn ends. @param isAwaited true if its prompt is unanswered */
  turnEnds(end: TurnEnd, isAwaited: boolean): void {
    const isDone = end.kind === 'success';
    if (this.profile.leavesCommandsOpen === true && isDone) {
      for (const call of this.#calls.open) {
        if (call.kind === 'execute') this.#start(call.id, call, { task_type: 'local_bash' });
      }
    }
    if (this.profile.waitsForBackground !== true || !isDone || isAwaited) return;
    for (const id of this.#writer.openTasks) {
      const summary = 'Ended before its prompt was answered. The agent doesn’t report the outcome.';
      this.#writer.taskCompleted({ task_id: id, status: 'completed', summary });
    }
  }

  #startedBy(call: ToolCall, { taskId, pid, taskType }: BackgroundStart, output_file: string | null): void {
    // A numeric id restarts from the beginning with each process of the agent, so it needs a run id.
    const run_id = /^\d+$/.test(taskId ?? '') ? call.id : null;
    const id = taskId ?? call.id;
    const followed = this.profile.taskNote === undefined ? null : pid;
    this.#start(id, call, { run_id, task_type: taskType, output_file }, followed);
    if (followed !== null) setBounded(this.#processes, id, followed, MAX_PROCESSES);
  }

  /** Reads updates about known tasks from a result. */
  #seen(call: ToolCall, text: string, file: string | null): void {
    const ended = parseBackgroundEnd(text);
    if (ended !== null && this.#writer.isRunning(ended.taskId)) {
      this.#writer.taskCompleted({ task_id: ended.taskId, status: ended.status, exit_code: ended.exitCode });
    }
    if (file !== null) this.#claude.outputFile(this.#claude.taskOfCall(call.id), file);
  }

  #start(
    id: string,
    { id: callId, title, rawInput, name }: ToolCall,
    about: Partial<TaskEventValue>,
    pid: number | null = null,
  ): void {
    const { description, command } = fieldsOf(rawInput);
    const text = truncateText(textOf(description) ?? textOf(command) ?? (title || name), MAX_DESCRIPTION);
    this.#writer.taskStarted({ task_id: id, tool_use_id: callId, description: text, ...compact(about) });
    const { taskNote } = this.profile;
    const summary = pid === null ? taskNote : `Runs as process ${pid}. The agent does not report its exit code.`;
    if (summary !== undefined) this.#writer.taskUpdated({ task_id: id, summary });
  }
}

/**
 * Background work announced in a tool result. ACP v1 has no message for it: these first words are the only sign.
 *
 * @see qwen-code 0.24.4, gemini-cli 0.61.0, kimi-code 2.1.0, copilot 1.0.102
 */
interface BackgroundStart {
  /** The agent's id; null if unnamed. */
  taskId: string | null;
  /** Process id, if named. */
  pid: number | null;
  taskType: 'local_bash' | 'local_agent';
}

const STARTS: readonly { says: RegExp; taskType: BackgroundStart['taskType'] }[] = [
  { says: /^Background shell started\.\s+id: (?<id>\S+)/, taskType: 'local_bash' },
  { says: /^[^\n]{0,200}\bbackground with shellId: (?<id>\S+?)[.>\s]/, taskType: 'local_bash' },
  { says: /^Command moved to background \(PID: (?<pid>\d{1,10})\)/, taskType: 'local_bash' },
  {
    says: /^task_id: (?<id>\S+)\n(?:pid: (?<pid>\d{1,10})\n)?(?:[^\n]*\n){0,3}status: running\n/,
    taskType: 'local_bash',
  },
  { says: /^Agent started in background with agent_id: (?<id>[\w-]+)/, taskType: 'local_agent' },
];

function parseBackgroundStart(text: string): BackgroundStart | null {
  for (const { says, taskType } of STARTS) {
    const found = says.exec(text.slice(0, 4_000));
    if (found === null) continue;
    const { id = null, pid } = found.groups ?? {};
    return { taskId: id, pid: pid === undefined ? null : Number(pid), taskType };
  }
  return null;
}

/**
 * Finds a background command's output file in the first words of a qwen or Claude Code result.
 *
 * @param text result of a call to run a background command; in other results the phrase may be arbitrary output
 * @param taskId task the phrase must name
 */
function parseOutputFile(text: string, taskId: string): string | null {
  for (const says of OUTPUTS) {
    const [, id, file = null] = says.exec(text.slice(0, 8_000)) ?? [];
    if (id === taskId) return file;
  }
  return null;
}

const OUTPUTS = [
  /^Background shell started\.\nid: (\S+)\n(?:pid: \d+\n)?output file: ([^\n]+)\n/,
  /^Command running in background with ID: (\S+)\. Output is being written to: ([^\n]+?\.output)\. /,
];

/** End of background work in a later result, as Copilot reports it when it reads the output. */
interface BackgroundEnd {
  taskId: string;
  status: 'completed' | 'failed';
  exitCode: number | null;
}

function parseBackgroundEnd(text: string): BackgroundEnd | null {
  const start = text.slice(0, 1_000);
  const agent = /^Agent (?:is idle|has completed|completed|failed)[^\n]*?agent_id: ([\w-]+)[^\n]*?status: (\w+)/.exec(
    start,
  );
  if (agent?.[1] !== undefined && agent[2] !== 'running') {
    return { taskId: agent[1], status: agent[2] === 'failed' ? 'failed' : 'completed', exitCode: null };
  }
  const shell = /<shellId: (\S+) completed with exit code (\d+)>\s*$/.exec(text.slice(-200));
  if (shell?.[1] === undefined) return null;
  const exitCode = Number(shell[2]);
  return { taskId: shell[1], status: exitCode === 0 ? 'completed' : 'failed', exitCode };
}

/**
 * A task end reported by Qwen Code: chunks with a `source`, and `_qwencode/start_turn` and `_qwencode/end_turn` around
 * between-run turns.
 *
 * @see @qwen-code/qwen-code 0.24.4
 */
interface EndedTask {
  task_id: string;
  status: 'completed' | 'failed' | 'stopped';
  summary: string;
  description?: string;
}

/** Parses a task end, which comes as a text but is not agent content. */
export function qwenTaskEnd(meta: Fields, text: string): EndedTask | null {
  if (meta.source !== 'background_task_completed') return null;
  const { taskId, status, commandLabel, label } = fieldsOf(meta.backgroundTask);
  const id = textOf(taskId);
  if (id === null) return null;
  return compact({
    task_id: id,
    status:
      status === 'failed'
        ? ('failed' as const)
        : status === 'cancelled'
          ? ('stopped' as const)
          : ('completed' as const),
    summary: truncateText(text, 2_000),
    description: textOf(commandLabel) ?? textOf(label) ?? undefined,
  });
}

/** True for the repeated notice at the start of the turn that answers it. */
export function isQwenTurnNotice(meta: Fields): boolean {
  return meta.source === 'background_notification';
}

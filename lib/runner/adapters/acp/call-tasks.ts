import type { TaskEventValue } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { remember } from '../remember';
import type { SessionWriter, TurnEnd } from '../writer/session-writer';
import type { AgentProfile } from './agent-profiles';
import { type BackgroundStart, backgroundEnd, backgroundStart, outputFileIn } from './background';
import type { CallEnd, Calls, ToolCall } from './calls';
import type { ClaudeExtras } from './claude-extras';

const MAX_DESCRIPTION = 500;
const MAX_PROCESSES = 256;
/** Kinds of calls that begin nothing: what they give is the text of a file or a page, whatever it says. */
const ONLY_TEXTS: ReadonlySet<string | null> = new Set(['read', 'search', 'fetch', 'edit', 'delete', 'move']);

/** The background tasks that show in tool calls: there is no other word for them in ACP v1. */
export class CallTasks {
  profile: AgentProfile = { limits: [] };
  readonly #writer: SessionWriter;
  readonly #calls: Calls;
  readonly #claude: ClaudeExtras;
  /** Processes of open tasks whose ends the agent does not tell, by the tasks. */
  readonly #processes = new Map<string, number>();

  constructor(writer: SessionWriter, calls: Calls, claude: ClaudeExtras) {
    this.#writer = writer;
    this.#calls = calls;
    this.#claude = claude;
  }

  /** The processes by which open tasks end. */
  get processes(): number[] {
    return [...this.#processes].flatMap(([id, pid]) => (this.#writer.runs(id) ? pid : []));
  }

  /** The agent has lost its session: of what runs, only processes tell how they go on. */
  forgotten(): void {
    for (const id of this.#writer.openTasks) {
      if (this.#processes.has(id)) continue;
      const error = 'The agent has lost its session, and nothing told how this ended.';
      this.#writer.taskCompleted({ task_id: id, status: 'lost', error });
    }
  }

  /** A process has gone. @param wasSeen it was there before */
  processEnded(pid: unknown, wasSeen: boolean): void {
    for (const [id, one] of this.#processes) {
      if (one !== pid) continue;
      this.#processes.delete(id);
      if (!this.#writer.runs(id)) continue;
      if (wasSeen) {
        const summary = `Its process (${pid}) has ended. The agent does not tell its exit code.`;
        this.#writer.taskCompleted({ task_id: id, status: 'completed', summary });
      } else {
        const error = `Its process (${pid}) is not on this machine: it ended at once, or runs elsewhere.`;
        this.#writer.taskCompleted({ task_id: id, status: 'lost', error });
      }
    }
  }

  /** The task of the subagent that says or calls this; null: the agent itself. */
  subagentOf(meta: Fields): string | null {
    const parent = textOf(fieldsOf(meta.claudeCode).parentToolUseId);
    if (parent !== null) return this.#claude.taskOfCall(parent);
    return textOf(fieldsOf(meta['github.com/copilot']).agentId);
  }

  /** What claude-agent-acp says of a call that goes on in the background, to clients that ask for nothing more. */
  launched(call: ToolCall, { backgroundTaskId, isAsync, agentId, description, outputFile }: Fields): void {
    const id = textOf(backgroundTaskId) ?? (isAsync === true ? textOf(agentId) : null);
    // What a server of tools answers is its own, and no word of the agent's program.
    if (id === null || call.name.startsWith('mcp__')) return;
    this.#claude.started(call.id, id);
    if (this.#writer.runs(id)) return;
    const task_type = backgroundTaskId === undefined ? 'local_agent' : 'local_bash';
    this.#start(id, call, {
      task_type,
      output_file: textOf(outputFile),
      description: textOf(description) ?? undefined,
    });
  }

  /** A call has given its result. @param wasLeft its turn had ended before it */
  callEnded({ call, text, rawOutput, exitCode, isError, isBackground }: CallEnd, wasLeft: boolean): void {
    const { type } = fieldsOf(rawOutput);
    if (wasLeft && this.#writer.runs(call.id)) {
      const status = isError || (exitCode ?? 0) !== 0 ? 'failed' : 'completed';
      this.#writer.taskCompleted({ task_id: call.id, status, exit_code: exitCode });
      return;
    }
    // What a command in the foreground printed may be anything, these words as well. An agent that announces its tasks
    // has no such words for them.
    const isOnlyText = type === 'shell_result' || ONLY_TEXTS.has(call.kind) || this.profile.stopsTasks === true;
    const started = isOnlyText ? null : backgroundStart(text);
    const file = isBackground ? outputFileIn(text, started?.taskId ?? this.#claude.taskOfCall(call.id)) : null;
    if (started !== null) this.#startedBy(call, started, file);
    else this.#seen(call, text, file);
    this.#claude.callEnded(call.id, isError);
  }

  /** What is open as a turn ends, before it does. @param isAwaited its prompt is not answered */
  turnEnds(end: TurnEnd, isAwaited: boolean): void {
    const isDone = end.kind === 'success';
    if (this.profile.leavesCommandsOpen === true && isDone) {
      for (const call of this.#calls.open) {
        if (call.kind === 'execute') this.#start(call.id, call, { task_type: 'local_bash' });
      }
    }
    if (this.profile.waitsForBackground !== true || !isDone || isAwaited) return;
    for (const id of this.#writer.openTasks) {
      const summary = 'It ended before its prompt was answered; how, the agent does not tell.';
      this.#writer.taskCompleted({ task_id: id, status: 'completed', summary });
    }
  }

  #startedBy(call: ToolCall, { taskId, pid, taskType }: BackgroundStart, output_file: string | null): void {
    // A number that the agent's next process begins anew with is no name.
    const run_id = /^\d+$/.test(taskId ?? '') ? call.id : null;
    const id = taskId ?? call.id;
    const followed = this.profile.taskNote === undefined ? null : pid;
    this.#start(id, call, { run_id, task_type: taskType, output_file }, followed);
    if (followed !== null) remember(this.#processes, id, followed, MAX_PROCESSES);
  }

  /** What a result says of tasks that are known. */
  #seen(call: ToolCall, text: string, file: string | null): void {
    const ended = backgroundEnd(text);
    if (ended !== null && this.#writer.runs(ended.taskId)) {
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
    const said = truncateText(textOf(description) ?? textOf(command) ?? (title || name), MAX_DESCRIPTION);
    this.#writer.taskStarted({ task_id: id, tool_use_id: callId, description: said, ...compact(about) });
    const { taskNote } = this.profile;
    const summary = pid === null ? taskNote : `Runs as process ${pid}. The agent does not tell its exit code.`;
    if (summary !== undefined) this.#writer.taskUpdated({ task_id: id, summary });
  }
}

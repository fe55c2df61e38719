import { type Fields, fieldsOf, listOf, textOf } from '@/lib/protocol/fields';
import { withInterlude } from '@/lib/protocol/with-interlude';
import type { Emit } from '../emit';
import { Lane } from './lane';
import { type CallResult, verdictIn } from './requests';
import { contentText, hasStandIns, rawIfSmall, resultText } from './stand-in';
import type { Tasks } from './tasks';

/** Most subagents that are followed at once; the one that has been silent for longest goes first. */
const MAX_LANES = 64;

interface Speaker {
  taskId: string;
  runId: string | null;
}

/** What a tool call came to. */
export interface ToolResult extends CallResult {
  toolUseId: string;
}

/**
 * Who says what: the main thread speaks in the open turn, each subagent under its task. The streams of subagents may be
 * interleaved, so each has a lane of its own.
 */
export class Lanes {
  readonly #emit: Emit;
  readonly #tasks: Tasks;
  readonly #main: Lane;
  readonly #subagents = new Map<string, { lane: Lane; speaker: Speaker }>();

  constructor(emit: Emit, tasks: Tasks, currentRun: () => string | null) {
    this.#emit = emit;
    this.#tasks = tasks;
    this.#main = new Lane(emit, () => currentRun() ?? 'no-run');
  }

  stream(message: Fields): void {
    this.#lane(message).stream(fieldsOf(message.event));
  }

  /** @returns the tool results among the blocks: those of tools that ran at the API */
  assistant(message: Fields): ToolResult[] {
    const lane = this.#lane(message);
    const { id, content } = fieldsOf(message.message);
    const results: ToolResult[] = [];
    for (const block of typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content)) {
      const result = this.#toolResult(message, fieldsOf(block));
      if (result === null) lane.whole(textOf(id) ?? textOf(message.uuid), block);
      else results.push(result);
    }
    return results;
  }

  toolResults(message: Fields): ToolResult[] {
    return listOf(fieldsOf(message.message).content)
      .map((block) => this.#toolResult(message, fieldsOf(block)))
      .filter((result) => result !== null);
  }

  /** A message to the agent, from a person or another agent, or the prompt of a subagent. */
  userMessage(message: Fields, messageId: string, name: string | null): void {
    const { content } = fieldsOf(message.message);
    const said = this.#as(this.#speaker(message));
    const delta = contentText(content);
    said({ type: 'TEXT_MESSAGE_START', messageId, role: 'user', ...(name === null ? {} : { name }) });
    const raw = hasStandIns(content) ? rawIfSmall(content) : {};
    if (delta !== '') said({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta, ...raw });
    said({ type: 'TEXT_MESSAGE_END', messageId });
  }

  /** The turn ends; subagents go on talking. */
  closeMain(): void {
    this.#main.reset();
  }

  taskEnded(taskId: string): void {
    for (const [key, { lane, speaker }] of this.#subagents) {
      if (speaker.taskId !== taskId) continue;
      lane.close();
      this.#subagents.delete(key);
    }
  }

  closeAll(): void {
    this.#main.reset();
    for (const { lane } of this.#subagents.values()) lane.close();
    this.#subagents.clear();
  }

  #toolResult(message: Fields, block: Fields): ToolResult | null {
    const toolUseId = textOf(block.tool_use_id);
    if (toolUseId === null || typeof block.type !== 'string' || !block.type.endsWith('tool_result')) return null;
    const text = resultText(block.content);
    const isError = block.is_error === true;
    const raw = hasStandIns(block.content) ? rawIfSmall(block.content) : {};
    const messageId = `${textOf(message.uuid) ?? 'result'}/${toolUseId}`;
    if (!this.#lane(message).result(toolUseId, text, { isError, messageId, ...raw }))
      this.#as(this.#speaker(message))({
        ...{ type: 'TOOL_CALL_RESULT', messageId, toolCallId: toolUseId, content: text, role: 'tool' },
        ...(isError ? { isError } : {}),
        ...raw,
      });
    return { toolUseId, isError, text, verdict: verdictIn(message, toolUseId) };
  }

  #lane(message: Fields): Lane {
    const speaker = this.#speaker(message);
    if (speaker === null) return this.#main;
    const key = textOf(message.parent_tool_use_id) ?? speaker.taskId;
    const known = this.#subagents.get(key);
    this.#subagents.delete(key);
    const entry = known ?? { speaker, lane: this.#subagentLane(speaker) };
    this.#subagents.set(key, entry);
    if (this.#subagents.size > MAX_LANES) {
      const [oldest, silent] = this.#subagents.entries().next().value as [string, { lane: Lane }];
      silent.lane.close();
      this.#subagents.delete(oldest);
    }
    return entry.lane;
  }

  #subagentLane(speaker: Speaker): Lane {
    const base = speaker.runId === null ? speaker.taskId : `${speaker.taskId}/${speaker.runId}`;
    return new Lane(this.#as(speaker), () => base);
  }

  /** The subagent that speaks; null for the main thread. Whole messages name it, streams only name its tool call. */
  #speaker(message: Fields): Speaker | null {
    const agentId = textOf(message.agent_id);
    const toolUseId = textOf(message.parent_tool_use_id);
    if (agentId !== null) return { taskId: agentId, runId: this.#tasks.latestRun(agentId) };
    if (toolUseId === null) return null;
    const task = this.#tasks.ofToolUse(toolUseId);
    return { taskId: task?.id ?? toolUseId, runId: task?.runId ?? null };
  }

  #as(speaker: Speaker | null): Emit {
    if (speaker === null) return this.#emit;
    const { taskId, runId } = speaker;
    return (event) => {
      const ofTask = { ...event, subagentRunId: taskId };
      this.#emit(runId === null ? ofTask : withInterlude(ofTask, { taskRunId: runId }));
    };
  }
}

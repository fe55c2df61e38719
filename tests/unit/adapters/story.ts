import type {
  AgUiEvent,
  RequestResolvedValue,
  TaskEventValue,
  TimedEvent,
  TurnTrigger,
} from '@interlude/protocol/ag-ui';
import { isJson } from '@interlude/protocol/fields';

/** Summary of a sequence of events, independent of the projections under lib. */
export interface Story {
  turns: StoryTurn[];
  /** Assistant texts of subagents, by task. */
  subagents: Record<string, string[]>;
  userMessages: { id: string; text: string }[];
  tasks: Record<string, TaskEventValue & { ends: string[] }>;
  requests: { id: string; outcomes: RequestResolvedValue['outcome'][] }[];
  customs: AgUiEvent[];
  raws: unknown[];
}

interface StoryTurn {
  runId: string;
  parentRunId: string | null;
  kind: 'user' | 'between-run';
  startTrigger: TurnTrigger | null;
  trigger: TurnTrigger | null;
  userMessageIds: string[];
  foldedTaskIds: string[];
  texts: string[];
  reasoning: string[];
  tools: { name: string; args: unknown; result: string | null; isError: boolean }[];
  end: 'success' | 'cancelled' | 'open' | { message: string; code: string };
}

/**
 * Reads events and checks AG-UI's order: no nested runs, content between start and end, nothing of the main thread open
 * at the end of a run.
 *
 * @throws at the first event out of order
 */
export function tell(outputs: readonly TimedEvent[]): Story {
  const story: Story = {
    turns: [],
    subagents: Object.create(null),
    userMessages: [],
    tasks: Object.create(null),
    requests: [],
    customs: [],
    raws: [],
  };
  const open = new Map<string, { text: string; task: string | null; done: (text: string) => void }>();
  const tools = new Map<string, StoryTurn['tools'][number]>();
  const seen = new Set<string>();
  let turn: StoryTurn | null = null;

  const begin = (key: string, event: AgUiEvent, done: (text: string) => void) => {
    if (seen.has(key)) throw new Error(`${key} starts twice`);
    seen.add(key);
    open.set(key, { text: '', task: event.subagentRunId ?? null, done });
  };
  const say = (key: string, event: AgUiEvent) => {
    const entry = open.get(key);
    if (entry === undefined) throw new Error(`${event.type} of ${key} outside its start and end`);
    if (event.delta === '') throw new Error(`${event.type} of ${key} is empty`);
    entry.text = event.metadata?.interlude?.whole === true ? String(event.delta) : entry.text + String(event.delta);
  };
  const finish = (key: string) => {
    const entry = open.get(key);
    if (entry === undefined) throw new Error(`${key} ends without having started`);
    open.delete(key);
    entry.done(entry.text);
  };

  for (const { event } of outputs) {
    const meta = event.metadata?.interlude;
    const id = String(event.messageId ?? event.toolCallId);
    switch (event.type) {
      case 'RUN_STARTED':
        if (turn !== null) throw new Error(`${event.runId} starts within ${turn.runId}`);
        turn = {
          runId: String(event.runId),
          parentRunId: (event.parentRunId as string | undefined) ?? null,
          kind: meta?.turn as StoryTurn['kind'],
          startTrigger: meta?.trigger ?? null,
          trigger: null,
          userMessageIds: [],
          foldedTaskIds: [],
          texts: [],
          reasoning: [],
          tools: [],
          end: 'open',
        };
        story.turns.push(turn);
        break;
      case 'RUN_FINISHED':
      case 'RUN_ERROR': {
        if (turn === null || turn.runId !== event.runId) throw new Error(`${event.runId} ends and is not open`);
        for (const [key, { task }] of open) if (task === null) throw new Error(`${key} is open at the end of its run`);
        turn.trigger = meta?.trigger ?? null;
        turn.userMessageIds = meta?.userMessageIds ?? [];
        turn.foldedTaskIds = meta?.foldedTaskIds ?? [];
        turn.end =
          event.type === 'RUN_ERROR'
            ? { message: String(event.message), code: String(event.code) }
            : (event.outcome as { type: 'success' | 'cancelled' }).type;
        turn = null;
        break;
      }
      case 'TEXT_MESSAGE_START': {
        const task = event.subagentRunId;
        if (event.role === 'user' && task === undefined) {
          const message = { id, text: '' };
          story.userMessages.push(message);
          begin(`text ${id}`, event, (text) => {
            message.text = text;
          });
          break;
        }
        if (task !== undefined) story.subagents[task] ??= [];
        const texts = task === undefined ? turn?.texts : story.subagents[task];
        if (texts === undefined) throw new Error(`${id} stands in no run`);
        begin(`text ${id}`, event, placeIn(texts));
        break;
      }
      case 'TEXT_MESSAGE_CONTENT':
        say(`text ${id}`, event);
        break;
      case 'TEXT_MESSAGE_END':
        finish(`text ${id}`);
        break;
      case 'REASONING_START':
        begin(`reasoning ${id}`, event, skip);
        break;
      case 'REASONING_MESSAGE_START': {
        if (!open.has(`reasoning ${id}`)) throw new Error(`reasoning message ${id} outside its reasoning`);
        begin(
          `thought ${id}`,
          event,
          event.subagentRunId === undefined && turn !== null ? placeIn(turn.reasoning) : skip,
        );
        break;
      }
      case 'REASONING_MESSAGE_CONTENT':
        say(`thought ${id}`, event);
        break;
      case 'REASONING_MESSAGE_END':
        finish(`thought ${id}`);
        break;
      case 'REASONING_END':
        finish(`reasoning ${id}`);
        break;
      case 'TOOL_CALL_START': {
        const tool: StoryTurn['tools'][number] = {
          name: String(event.toolCallName),
          args: undefined,
          result: null,
          isError: false,
        };
        const toolId = String(event.toolCallId);
        tools.set(toolId, tool);
        if (event.subagentRunId === undefined) turn?.tools.push(tool);
        begin(`tool ${toolId}`, event, (args) => {
          tool.args = isJson(args) ? JSON.parse(args) : args;
        });
        break;
      }
      case 'TOOL_CALL_ARGS':
        say(`tool ${event.toolCallId}`, event);
        break;
      case 'TOOL_CALL_END':
        finish(`tool ${event.toolCallId}`);
        break;
      case 'TOOL_CALL_RESULT': {
        if (open.has(`tool ${event.toolCallId}`)) throw new Error(`${event.toolCallId} has a result before its end`);
        const tool = tools.get(String(event.toolCallId));
        if (tool !== undefined) {
          tool.result = String(event.content);
          tool.isError = event.isError === true;
        }
        break;
      }
      case 'RAW':
        story.raws.push(event.event);
        break;
      case 'CUSTOM':
        story.customs.push(event);
        tellCustom(story, String(event.name), event.value as Record<string, unknown>);
        break;
      default:
        throw new Error(`unexpected ${event.type}`);
    }
  }
  return story;
}

/** Reserves the place of a message at its start, so parallel texts keep their start order. */
function placeIn(texts: string[]): (text: string) => void {
  const at = texts.push('') - 1;
  return (text) => {
    texts[at] = text;
  };
}

function skip(): void {}

function tellCustom(story: Story, name: string, value: Record<string, unknown>): void {
  if (name.startsWith('task:')) {
    const task = value as unknown as TaskEventValue;
    const known = story.tasks[task.task_id];
    const ends = [...(known?.ends ?? []), ...(name === 'task:completed' ? [String(task.status)] : [])];
    story.tasks[task.task_id] = { ...known, ...task, ends };
  }
  if (name === 'request:opened') story.requests.push({ id: String(value.request_id), outcomes: [] });
  if (name === 'request:resolved') {
    const outcome = value.outcome as RequestResolvedValue['outcome'];
    story.requests.find((request) => request.id === value.request_id)?.outcomes.push(outcome);
  }
}

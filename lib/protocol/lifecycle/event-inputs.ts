import type { AgUiEvent } from '../ag-ui';
import {
  CUSTOM,
  customName,
  customValue,
  idField,
  pick,
  pickId,
  pickText,
  subagentTaskId,
  taskEndOf,
} from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import type { InputOf, Kind } from './grammar';

/** An event's input for one entity of its session. */
export type EventInput<K extends Kind = Kind> = {
  [One in K]: {
    kind: One;
    /** For a turn null: the open one. For a task the id that all its runs share. */
    id: One extends 'turn' ? string | null : string;
    input: InputOf<One>;
    /** The task whose subagent acts; null: the agent itself. */
    by: string | null;
    /** The run of a task; null: its only or newest one. */
    runId: string | null;
  };
}[K];

type Read = (event: AgUiEvent) => readonly EventInput[];

const NONE: readonly EventInput[] = [];

function read<K extends Kind>(kind: K, field: string, ...inputs: InputOf<K>[]): Read {
  return (event) => {
    const id = idField(event, field);
    if (id === null && kind !== 'turn') return NONE;
    const by = subagentTaskId(event);
    return inputs.map((input) => ({ kind, id, input, by, runId: null }) as EventInput);
  };
}

const delta = (kind: 'text' | 'thought'): Read => {
  const [whole, more] = [read(kind, 'messageId', 'whole'), read(kind, 'messageId', 'delta')];
  return (event) => (readInterlude(event).whole === true ? whole(event) : more(event));
};

function task(input: InputOf<'task'>): Read {
  return (event) => {
    const value = customValue(event);
    const id = pickId(value, 'task_id', 'taskId');
    if (id === null) return NONE;
    const end = taskEndOf(event);
    // The runner lists a task again that was presumed lost.
    const isBack = pickText(value, 'status') === 'running' && readInterlude(event).presumed === true;
    const ended = end === null ? [] : [end === 'lost' ? ('presume' as const) : ('end' as const)];
    const inputs = input === 'start' || isBack ? ['start' as const, ...ended] : end === null ? [input] : ended;
    const about = { kind: 'task', id, by: null, runId: pickId(value, 'run_id', 'runId') } as const;
    return inputs.map((one) => ({ ...about, input: one }));
  };
}

function request(input: (outcome: string | null) => InputOf<'request'>): Read {
  return (event) => {
    const value = customValue(event);
    const id = pickId(value, 'request_id', 'requestId');
    if (id === null) return NONE;
    return [{ kind: 'request', id, input: input(pickText(value, 'outcome')), by: null, runId: null }];
  };
}

type Bracket = 'step' | 'subagent' | 'span';

/** Distinguishes steps, subagents and reasoning spans of the same name, and equal steps of two subagents. */
export function bracketId(bracket: Bracket, name: string, by: string | null = null): string {
  return JSON.stringify([bracket, name, by]);
}

function bracket(which: Bracket, field: string, input: InputOf<'bracket'>): Read {
  return (event) => {
    const name = idField(event, field);
    if (name === null) return NONE;
    const by = subagentTaskId(event);
    return [{ kind: 'bracket', id: bracketId(which, name, which === 'step' ? by : null), input, by, runId: null }];
  };
}

const callEnds = read('call', 'toolCallId', 'end');
const callIsAnswered = read('call', 'toolCallId', 'end', 'result');
const NOT_ANSWERED: Record<string, InputOf<'request'>> = { unknown: 'pass', cancelled: 'cut', expired: 'cut' };

const BY_TYPE: Readonly<Record<string, Read>> = {
  RUN_STARTED: read('turn', 'runId', 'begin'),
  RUN_FINISHED: read('turn', 'runId', 'end'),
  RUN_ERROR: read('turn', 'runId', 'end'),
  TEXT_MESSAGE_START: read('text', 'messageId', 'start'),
  TEXT_MESSAGE_CONTENT: delta('text'),
  TEXT_MESSAGE_CHUNK: delta('text'),
  TEXT_MESSAGE_END: read('text', 'messageId', 'end'),
  REASONING_MESSAGE_START: read('thought', 'messageId', 'start'),
  REASONING_MESSAGE_CONTENT: delta('thought'),
  REASONING_MESSAGE_CHUNK: delta('thought'),
  REASONING_MESSAGE_END: read('thought', 'messageId', 'end'),
  TOOL_CALL_START: read('call', 'toolCallId', 'start'),
  TOOL_CALL_ARGS: read('call', 'toolCallId', 'args'),
  TOOL_CALL_CHUNK: read('call', 'toolCallId', 'start', 'args'),
  // Older AG-UI clients send the result with the end.
  TOOL_CALL_END: (event) => (pick(event, 'result') === undefined ? callEnds : callIsAnswered)(event),
  TOOL_CALL_RESULT: read('call', 'toolCallId', 'result'),
  STEP_STARTED: bracket('step', 'stepName', 'start'),
  STEP_FINISHED: bracket('step', 'stepName', 'end'),
  SUBAGENT_STARTED: bracket('subagent', 'subagentRunId', 'start'),
  SUBAGENT_FINISHED: bracket('subagent', 'subagentRunId', 'end'),
  SUBAGENT_ERROR: bracket('subagent', 'subagentRunId', 'end'),
  REASONING_START: bracket('span', 'messageId', 'start'),
  REASONING_END: bracket('span', 'messageId', 'end'),
};

const BY_NAME: Readonly<Record<string, Read>> = {
  [CUSTOM.taskStarted]: task('start'),
  [CUSTOM.taskProgress]: task('report'),
  [CUSTOM.taskUpdated]: task('report'),
  [CUSTOM.taskCompleted]: task('end'),
  [CUSTOM.requestOpened]: request(() => 'ask'),
  [CUSTOM.requestResolved]: request((outcome) => NOT_ANSWERED[outcome ?? ''] ?? 'answer'),
};

/**
 * The inputs of an event for the entities it names, in order. Excludes inputs that follow from another entity's end, for
 * example the cut of a call whose turn ends.
 */
export function inputsOf(event: AgUiEvent): readonly EventInput[] {
  const name = customName(event);
  const [table, key] = name === null ? [BY_TYPE, event.type] : [BY_NAME, name];
  return Object.hasOwn(table, key) ? (table[key]?.(event) ?? NONE) : NONE;
}

/** An id for every entity that an event may name. */
const NAMES = { runId: '-', messageId: '-', toolCallId: '-', stepName: '-', subagentRunId: '-' };

/** The kind of entity that events of a type are about, even without its id; null for other types. */
export function kindOf(type: string): Kind | null {
  return inputsOf({ type, ...NAMES })[0]?.kind ?? null;
}

/** True if the event reports the end of the agent's process, which ends everything open. */
export function endsSession(event: AgUiEvent): boolean {
  return customName(event) === CUSTOM.sessionEnded;
}

/** True if the event shows that the agent's process runs. */
export function startsSession(event: AgUiEvent): boolean {
  return event.type === 'RUN_STARTED' || customName(event) === CUSTOM.sessionStarted;
}

import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { contentText } from './stand-in';

/** Background work that the result of a tool call names. */
export interface LaunchedWork {
  id: string;
  /** Null if the result does not say, as of tools of a later CLI. */
  type: string | null;
}

/** Names under which the CLI's tools give the id of background work. */
export const TASK_IDS = ['backgroundTaskId', 'taskId', 'task_id', 'agentId', 'shellId', 'shell_id', 'bash_id'] as const;
/** Names of a subagent that a message has started again. */
const RESUMED_IDS = ['resumedAgentId', 'revivedAgentId'] as const;
/** Sentences with which the CLI's tools begin a result that names background work, where its fields are not written. */
const LAUNCHES = [
  { type: 'local_bash', text: /^Command running in background with ID: ([\w-]{1,256})\b/, asks: true },
  { type: 'local_agent', text: /^Async agent launched successfully[\s\S]{0,500}?\bagentId: ([\w-]{1,256})\b/ },
  { type: 'local_workflow', text: /^Workflow launched in background\. Task ID: ([\w-]{1,256})\b/ },
  { type: 'monitor', text: /^Monitor started \(task ([\w-]{1,256})\b/ },
] as const;

/** Background work that a result names: by the shape of its fields, whatever the tool. */
export function launchIn(line: Fields, result: Fields, call: Fields): LaunchedWork | null {
  const told = fieldsOf(line.toolUseResult);
  const resumed = told.success === true ? named(told, RESUMED_IDS) : null;
  if (resumed !== null) return { id: resumed, type: 'local_agent' };
  const isLaunched =
    told.isAsync === true ||
    told.background === true ||
    /launched$/.test(`${told.status}`) ||
    typeof told.persistent === 'boolean';
  const id = named(told, ['backgroundTaskId']) ?? (isLaunched ? launchedId(told) : null);
  // A workflow that does not compile is launched in name only.
  if (id !== null) return textOf(told.error) === null ? { id, type: launchedType(told, id) } : null;
  if (line.toolUseResult !== undefined) return null;
  const text = contentText(result.content).slice(0, 8_192);
  for (const { type, text: sentence, ...more } of LAUNCHES) {
    const found = sentence.exec(text)?.[1];
    // A command in the foreground may print the same sentence.
    if (found !== undefined && (!('asks' in more) || call.run_in_background === true)) return { id: found, type };
  }
  return null;
}

function named(told: Fields, names: readonly string[]): string | null {
  return names.map((name) => textOf(told[name])).find((value) => value !== null) ?? null;
}

/** Tools of a later CLI may name the id in another way. */
function launchedId(told: Fields): string | null {
  const others = Object.keys(told).filter(
    (name) => /(?:^id|Id|_id)$/.test(name) && !/tool_?use|parent|session|run/i.test(name),
  );
  return named(told, [...TASK_IDS, ...others]);
}

function launchedType(told: Fields, id: string): string | null {
  const type = textOf(told.taskType) ?? textOf(told.task_type);
  if (type !== null) return type;
  if (told.agentId === id) return 'local_agent';
  if (told.backgroundTaskId === id && told.stdout !== undefined) return 'local_bash';
  if (typeof told.persistent === 'boolean') return 'monitor';
  return told.sessionUrl === undefined ? null : 'remote_agent';
}

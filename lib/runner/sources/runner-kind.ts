import { randomUUID } from 'node:crypto';
import { access, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { delimiter, resolve } from 'node:path';
import type { AgentStatus } from '@interlude/protocol/agent-status';
import { truncateText } from '@interlude/protocol/text';
import { CliError, EXIT } from '../cli/command';
import type { Source, SourceContext } from '../host/source';
import type { CallerRule } from '../host/tool-callers';
import type { Logger } from '../logger/logger';
import type { Outbox } from '../outbox/outbox';

/** A kind of agent, run by `interlude runner <kind>`. @see README.md */
export interface RunnerKind {
  /** Supported features, with reasons for missing ones. */
  features: KindFeatures;
  /** True if it accepts a command after `--`, passed as `RunnerCall.command`. */
  acceptsCommand?: boolean;
  /**
   * True if the agent has an address: `--url` names it, and `--dashboard` the dashboard (default: INTERLUDE_URL, or the
   * local one).
   */
  urlNamesAgent?: true;
  /** True if it runs one session, so that `--prompt` may name the first message. */
  acceptsPrompt?: true;
  help: string;
  /** Options with a value besides `--agent`, `--session`, `--url` and `--token-file`. */
  flags?: readonly string[];
  /** Options without a value. */
  switches?: readonly string[];
  /**
   * Validates the options and finds what the kind needs on this machine, before anything is opened.
   * @throws CliError with a line that says what to do next
   */
  prepare(call: RunnerCall): Promise<PreparedRunner>;
}

export interface RunnerCall {
  flag(name: string): string | undefined;
  has(name: string): boolean;
  /** @returns milliseconds */
  seconds(name: string, otherwise: number, most: number): number;
  usage(problem: string): Error;
  env: Record<string, string | undefined>;
  dataDir: string;
  /** The command after `--`. */
  command: readonly string[];
}

export interface PreparedRunner {
  /** Fields of the status record. */
  about: AgentStatus & { kind: string };
  /** True if log lines name their session. */
  hasManySessions?: true;
  /** Default agent id. */
  agentId: string;
  /** True if only one runner may run per machine: a second one is refused rather than renamed. */
  isExclusive?: boolean;
  /** True if an outbox belongs to the wanted agent. If none does, the first free agent is used. */
  matches?(outbox: Outbox): Promise<boolean>;
  /** Path of the control file; by default one for each agent. */
  controlFile?: string;
  /** Rule by which tool calls prove their session. @see lib/runner/host/tool-callers.ts */
  callers?: CallerRule;
  /** Time for agents to finish their work on close. */
  endWithinMs: number;
  open(opened: OpenedRunner): Promise<RunningKind>;
}

export interface OpenedRunner {
  agentId: string;
  controlFile: string;
  outbox: Outbox;
  logger: Logger;
  /** Text for the agent before its first message. @see lib/runner/host/first-message.ts */
  workspaceNote: string | null;
  /** Records the traffic between source and agent, with `--record`. */
  record?: (fields: object) => void;
}

interface RunningKind {
  source(context: SourceContext): Source | Promise<Source>;
  /** The session of a single-session runner; its URL is printed. */
  sessionId?: string;
  /** Printed to stderr if there is no `sessionId`. */
  greeting?: string;
}

/**
 * Features of a kind, in the order of the table in docs/kinds. A test compares the table, the handlers and the texts.
 */
export const FEATURES = {
  turns: 'turns with texts, thoughts and tool calls',
  betweenRun: 'between-run turns',
  cause: 'their causes',
  tasks: 'background tasks',
  taskEnds: 'how tasks ended',
  taskOutput: 'output of tasks',
  subagents: 'work of subagents',
  permissions: 'answer permissions in the dashboard',
  questions: 'answer questions in the dashboard',
  messages: 'messages from the dashboard',
  attachments: 'attachments',
  interrupt: 'interrupt a turn',
  end: 'end the session',
  stop: 'stop a task',
  wake: 'wake it with the result of a task',
  plans: 'plans',
  edits: 'file changes as diffs',
  catchUp: 'work done while the runner was away',
  shared: 'works beside your own terminal',
} as const;

export type Feature = keyof typeof FEATURES;

/**
 * True if fully supported, else a sentence for operators: `partly`, `no`, or `needless` because the agent does it by
 * itself.
 */
export type Support = true | { partly: string } | { no: string } | { needless: string };

export type KindFeatures = Record<Feature, Support>;

/** Limits shown on the page of an agent. */
export function limitsOf(features: KindFeatures): string[] {
  return Object.values(features).flatMap((support) =>
    support === true || 'needless' in support ? [] : Object.values(support),
  );
}

/**
 * Default agent id of a folder. Includes the machine name, since folders on two machines may share a name.
 * @param program the agent program, where a folder may have several
 */
export function agentIdOf(cwd: string, program?: string): string {
  const folder = cwd.split(/[/\\]/).at(-1) || 'root';
  return onThisMachine(`${program === undefined ? '' : `${idPart(program, 40)}-`}${idPart(folder, 80)}`);
}

/** Default agent id of an address. Each server is an agent of its own. */
export function agentIdOfAddress({ host, pathname }: URL): string {
  return idPart(`${host}${pathname}`, 80).replace(/-+$/, '');
}

export function onThisMachine(name: string): string {
  return `${name}@${hostname().split('.')[0]}`;
}

function idPart(text: string, most: number): string {
  return truncateText(text.replaceAll(/[^\w.-]+/g, '-'), most);
}

/** @throws CliError if the folder does not exist */
export async function folderOf(path: string): Promise<string> {
  const folder = resolve(path);
  const isFolder = await stat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isFolder) throw new CliError(EXIT.failed, `${folder} is not a folder; name an existing one with --cwd`);
  return folder;
}

/** True if a program exists. Looks up a name without a slash on the PATH, and a path from `cwd`. */
export async function isInstalled(program: string, cwd: string, env: RunnerCall['env']): Promise<boolean> {
  const folders = /[/\\]/.test(program) ? [cwd] : (env.PATH ?? '').split(delimiter);
  for (const folder of folders) if (await exists(resolve(folder, program))) return true;
  return false;
}

export function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Values of the options --session and --resume. */
export interface NamedSession {
  session: string | undefined;
  resume: string | undefined;
}

/** Finds the named session by the dashboard's id, else by the agent's. */
export function findSession<Session extends { sessionId: string }>(
  stored: readonly Session[],
  { session, resume }: NamedSession,
  nativeIdOf: (session: Session) => string | null,
): Session | undefined {
  const wanted = resume ?? session;
  if (wanted === undefined) return undefined;
  return stored.find(({ sessionId }) => sessionId === wanted) ?? stored.find((one) => nativeIdOf(one) === wanted);
}

/** @throws CliError if --resume and --session name two sessions */
export function assertOneSession({ sessionId }: { sessionId: string }, { session, resume }: NamedSession): void {
  if (session === undefined || session === sessionId) return;
  throw new CliError(EXIT.failed, `${resume} is session ${sessionId} already; omit --session`);
}

/**
 * Chooses and stores the session of an agent with an address: the named session, else the last one, else a new one.
 * @param cursor under which the last one is stored
 */
export async function sessionAtAddress(outbox: Outbox, cursor: string, named: string | undefined): Promise<string> {
  const sessionId = named ?? (await outbox.cursor(cursor)) ?? randomUUID();
  await outbox.enqueue([], { name: cursor, value: sessionId });
  return sessionId;
}

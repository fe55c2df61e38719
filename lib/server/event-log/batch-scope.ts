import { columnText } from '@/db/table-rows';

/** A task that a session speaks of, and the run of it if that is named. */
export interface MentionedTask {
  agentId: string;
  sessionId: string;
  taskId: string;
  runId: string | null;
}

export interface MentionedPart {
  sessionId: string;
  id: string;
  /** The length of the text to compare with it, in UTF-16 units. */
  length: number;
}

export function partKey(sessionId: string, id: string): string {
  return JSON.stringify([sessionId, id]);
}

/** The key of an agent's alias for a session, as the database has both. */
export function aliasKey(agentId: string, alias: string): string {
  return JSON.stringify([columnText(agentId), columnText(alias)]);
}

/** Everything that a batch may touch, so that it is read in one go: each thing once, however often the batch names it. */
export class BatchScope {
  readonly producerId: string;
  readonly sessionIds = new Set<string>();
  /** The agents that write to each of them. */
  readonly writers = new Map<string, Set<string>>();
  readonly agentIds = new Set<string>();
  /** Agents of which all sessions that are not done must be read: something failed or was lost around them. */
  readonly openSessionAgentIds = new Set<string>();
  /** Agents whose log is written to. */
  readonly logAgentIds = new Set<string>();
  /** Sessions in which owed replies may be given, besides those that are named. */
  readonly obligationSessionIds = new Set<string>();
  /** Sessions of which all running tasks end. */
  readonly endedSessionIds = new Set<string>();
  /** What status records tell of sessions: where it is news, the tasks that run or may run must be read. */
  readonly statusKeys = new Map<string, { status: Set<string>; lists: Set<string> }>();
  /** Sessions in which a turn may answer any task that ended lately. */
  readonly causelessSessionIds = new Set<string>();
  /** Sessions that records name which do not say of which agent they are. */
  readonly agentlessSessionIds = new Set<string>();
  /** Whether the batch says something to every session of its producer. */
  allProducerSessions = false;
  readonly #tasks = new Map<string, MentionedTask>();
  readonly #messages = new Map<string, [sessionId: string, messageId: string]>();
  readonly #said = new Map<string, MentionedPart>();
  readonly #names = new Map<string, Set<string | null>>();

  constructor(producerId: string) {
    this.producerId = producerId;
  }

  addTask(task: MentionedTask): void {
    this.#tasks.set(JSON.stringify([task.agentId, task.sessionId, task.taskId, task.runId]), task);
  }

  addWriter(sessionId: string, agentId: string): void {
    const known = this.writers.get(sessionId);
    if (known === undefined) this.writers.set(sessionId, new Set([agentId]));
    else known.add(agentId);
  }

  /** A session as an agent names it: by id or by alias. */
  addName(name: string, agentId: string | null): void {
    this.sessionIds.add(name);
    const agents = this.#names.get(name);
    if (agents === undefined) this.#names.set(name, new Set([agentId]));
    else agents.add(agentId);
  }

  /** A message to which a reply may be owed. */
  addMessage(sessionId: string, messageId: string): void {
    this.#messages.set(`${sessionId}\0${messageId}`, [sessionId, messageId]);
  }

  /** A message or call that a snapshot speaks of. */
  addPart(key: string, said: MentionedPart): void {
    this.#said.set(key, { ...said, length: Math.max(this.#said.get(key)?.length ?? 0, said.length) });
  }

  get tasks(): readonly MentionedTask[] {
    return [...this.#tasks.values()];
  }

  get messages(): Iterable<[sessionId: string, messageId: string]> {
    return this.#messages.values();
  }

  get parts(): readonly MentionedPart[] {
    return [...this.#said.values()];
  }

  /** Each session of the batch with each agent that names it. */
  *names(): Iterable<[name: string, agentId: string | null]> {
    for (const id of this.sessionIds) for (const agentId of this.#names.get(id) ?? [null]) yield [id, agentId];
  }

  get partKeys(): Iterable<string> {
    return this.#said.keys();
  }
}

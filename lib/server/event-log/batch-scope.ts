import { columnText } from '@/db/table-rows';

/** A task that an event mentions, by its session. */
export interface MentionedTask {
  agentId: string;
  sessionId: string;
  taskId: string;
  runId: string | null;
}

export interface MentionedPart {
  sessionId: string;
  id: string;
  /** Length of the text to compare, in UTF-16 units. */
  length: number;
}

export function partKey(sessionId: string, id: string): string {
  return JSON.stringify([sessionId, id]);
}

/** Key of an agent's alias for a session, with both ids as the database stores them. */
export function aliasKey(agentId: string, alias: string): string {
  return JSON.stringify([columnText(agentId), columnText(alias)]);
}

/** Everything that a batch may touch, without duplicates, so one read can load it. */
export class BatchScope {
  readonly producerId: string;
  readonly sessionIds = new Set<string>();
  /** The agents that write to each session. */
  readonly writers = new Map<string, Set<string>>();
  readonly agentIds = new Set<string>();
  /** Agents with a failure or loss that may concern all of their open sessions. */
  readonly openSessionAgentIds = new Set<string>();
  readonly logAgentIds = new Set<string>();
  /** Sessions in which any pending reply may arrive. */
  readonly obligationSessionIds = new Set<string>();
  /** Sessions with an event that affects all of their running tasks. */
  readonly endedSessionIds = new Set<string>();
  /**
   * States and lists that status records report. If they differ from the stored ones, the session's open tasks are
   * read.
   */
  readonly statusKeys = new Map<string, { status: Set<string>; lists: Set<string> }>();
  /** Sessions in which a turn without a named cause may answer any recently ended task. */
  readonly causelessSessionIds = new Set<string>();
  /** Sessions of records that name no agent. */
  readonly agentlessSessionIds = new Set<string>();
  /** True if the batch writes to every session of its producer. */
  allProducerSessions = false;
  readonly #tasks = new Map<string, MentionedTask>();
  readonly #messages = new Map<string, [sessionId: string, messageId: string]>();
  readonly #parts = new Map<string, MentionedPart>();
  readonly #names = new Map<string, Set<string | null>>();

  constructor(producerId: string) {
    this.producerId = producerId;
  }

  addTask(task: MentionedTask): void {
    this.#tasks.set(JSON.stringify([task.agentId, task.sessionId, task.taskId, task.runId]), task);
  }

  addWriter(sessionId: string, agentId: string): void {
    addToSet(this.writers, sessionId, agentId);
  }

  /** Adds a session as the agent names it: by id or by alias. */
  addName(name: string, agentId: string | null): void {
    this.sessionIds.add(name);
    addToSet(this.#names, name, agentId);
  }
  addMessage(sessionId: string, messageId: string): void {
    this.#messages.set(`${sessionId}\0${messageId}`, [sessionId, messageId]);
  }

  /** Adds a message or call of a snapshot. */
  addPart(key: string, part: MentionedPart): void {
    this.#parts.set(key, { ...part, length: Math.max(this.#parts.get(key)?.length ?? 0, part.length) });
  }

  get tasks(): readonly MentionedTask[] {
    return [...this.#tasks.values()];
  }

  get messages(): Iterable<[sessionId: string, messageId: string]> {
    return this.#messages.values();
  }

  get parts(): readonly MentionedPart[] {
    return [...this.#parts.values()];
  }

  /** Iterates over each session with each agent that names it. */
  *names(): Iterable<[name: string, agentId: string | null]> {
    for (const id of this.sessionIds) for (const agentId of this.#names.get(id) ?? [null]) yield [id, agentId];
  }

  get partKeys(): Iterable<string> {
    return this.#parts.keys();
  }
}

function addToSet<T>(sets: Map<string, Set<T>>, key: string, value: T): void {
  sets.set(key, (sets.get(key) ?? new Set<T>()).add(value));
}

import type { SaidScope } from './said-rows';

/** A task that a session speaks of, and which run of it where that is named. */
export interface SpokenTask {
  agentId: string;
  sessionId: string;
  taskId: string;
  runId: string | null;
}

/** Everything a batch may touch, so that it is read in one go: each once, however often the batch speaks of it. */
export class BatchScope {
  readonly producerId: string;
  readonly sessionIds = new Set<string>();
  readonly agentIds = new Set<string>();
  /** Agents whose sessions that are not done must all be known: something failed or was lost around them. */
  readonly openSessionsOf = new Set<string>();
  /** Agents whose log is written to. */
  readonly logAgentIds = new Set<string>();
  /** Sessions in which replies that are owed may be given, besides those that are named. */
  readonly owedIn = new Set<string>();
  /** Sessions whose running tasks all end. */
  readonly endedSessionIds = new Set<string>();
  /** Sessions in which a turn may answer any task that ended lately. */
  readonly wokenSessionIds = new Set<string>();
  /** Whether the batch says something to every session of its producer. */
  allProducerSessions = false;
  readonly #tasks = new Map<string, SpokenTask>();
  readonly #messages = new Map<string, [sessionId: string, messageId: string]>();
  readonly #said = new Map<string, SaidScope>();

  constructor(producerId: string) {
    this.producerId = producerId;
  }

  addTask(task: SpokenTask): void {
    this.#tasks.set(JSON.stringify([task.agentId, task.sessionId, task.taskId, task.runId]), task);
  }

  /** A message to which a reply may be owed. */
  addMessage(sessionId: string, messageId: string): void {
    this.#messages.set(`${sessionId}\0${messageId}`, [sessionId, messageId]);
  }

  /** What a snapshot speaks of: its rows are told one after the other, each as they are read. */
  addSaid(key: string, said: SaidScope): void {
    this.#said.set(key, { ...said, length: Math.max(this.#said.get(key)?.length ?? 0, said.length) });
  }

  get tasks(): readonly SpokenTask[] {
    return [...this.#tasks.values()];
  }

  get messages(): Iterable<[sessionId: string, messageId: string]> {
    return this.#messages.values();
  }

  get said(): readonly SaidScope[] {
    return [...this.#said.values()];
  }

  get saidKeys(): Iterable<string> {
    return this.#said.keys();
  }
}

import { type Fields, fieldsOf, numberOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../wire';
import type { SessionWriter } from '../writer/session-writer';
import type { TaskNotice } from './native-event';
import { idOf } from './native-event';

const MAX_SUBAGENTS = 1_000;
const MAX_DESCRIPTION = 500;

/** The `task` call that started a subagent. */
export interface Start {
  /** Log id. */
  toolUseId: string;
  input: Fields;
}

/** Subagents of one root session: each session below it is a task. */
export class Subagents {
  readonly #writer: SessionWriter;
  readonly #tree: SessionTree;
  /** Call that started the newest run, by session. */
  readonly #startedBy = new Map<string, string>();

  constructor(writer: SessionWriter, tree: SessionTree) {
    this.#writer = writer;
    this.#tree = tree;
  }

  /** @param start null if the subagent's output came before its call */
  begin(session: string, start: Start | null): void {
    const before = this.#startedBy.get(session);
    if (this.#writer.isRunning(session) || (before !== undefined && (start === null || start.toolUseId === before)))
      return;
    setBounded(this.#startedBy, session, start?.toolUseId ?? '', MAX_SUBAGENTS);
    const { title = null, agent = null, parentId = null } = this.#tree.get(session) ?? {};
    const named = textOf(start?.input.description) ?? title?.replace(/ \(@[^()]* subagent\)$/, '') ?? session;
    const type = textOf(start?.input.subagent_type) ?? agent;
    const isNested = parentId !== null && parentId !== this.#tree.rootOf(session);
    this.#writer.taskStarted({
      task_id: session,
      // Restarted under the same id: a new run.
      ...(before === undefined || start === null ? {} : { run_id: start.toolUseId }),
      ...(start === null ? {} : { tool_use_id: start.toolUseId }),
      description: truncateText(named, MAX_DESCRIPTION),
      task_type: 'local_agent',
      ...(type === null ? {} : { subagent_type: truncateText(type, 100) }),
      ...(isNested ? { parent_task_id: parentId } : {}),
    });
  }

  runs(session: string): boolean {
    return this.#writer.isRunning(session);
  }

  ended({ taskId, status, result }: TaskNotice): void {
    if (status === 'running') return;
    // Unknown: it started before the connection.
    if (!this.#startedBy.has(taskId) && this.#tree.get(taskId) === undefined) return;
    const details = result === '' ? {} : status === 'failed' ? { error: result } : { summary: result };
    this.#writer.taskCompleted({ task_id: taskId, status, ...details });
  }

  lost(session: string, error: string): void {
    this.#writer.taskCompleted({ task_id: session, status: 'lost', error });
  }
}

/** A session of OpenCode; one with a parent is a subagent. */
interface NativeSession {
  id: string;
  parentId: string | null;
  directory: string | null;
  title: string | null;
  /** Name of the agent: `build`, `general`. */
  agent: string | null;
  /** Epoch milliseconds by the server's clock; 0 if unknown. */
  createdAt: number;
  updatedAt: number;
}

/** Bounded, because a server may keep sessions for years. */
const MAX_SESSIONS = 20_000;
/** Nesting limit; a deeper chain of parents is a cycle. */
const MAX_DEPTH = 32;

/** Known sessions and their parents. */
export class SessionTree {
  readonly #sessions = new Map<string, NativeSession>();

  /** @param info a session as in events and routes */
  update(info: unknown): NativeSession | null {
    const fields = fieldsOf(info);
    const id = idOf(fields.id);
    if (id === null) return null;
    const known = this.#sessions.get(id);
    const { created, updated } = fieldsOf(fields.time);
    const session: NativeSession = {
      id,
      parentId: idOf(fields.parentID) ?? known?.parentId ?? null,
      directory: textOf(fields.directory) ?? known?.directory ?? null,
      title: textOf(fields.title) ?? known?.title ?? null,
      agent: textOf(fields.agent) ?? known?.agent ?? null,
      createdAt: numberOf(created) ?? known?.createdAt ?? 0,
      updatedAt: numberOf(updated) ?? numberOf(created) ?? known?.updatedAt ?? 0,
    };
    setBounded(this.#sessions, id, session, MAX_SESSIONS);
    return session;
  }

  get(id: string): NativeSession | undefined {
    return this.#sessions.get(id);
  }

  get all(): Iterable<NativeSession> {
    return this.#sessions.values();
  }

  forget(id: string): void {
    this.#sessions.delete(id);
  }

  /** Root of a session's tree; the session itself if unknown. */
  rootOf(id: string): string {
    let root = id;
    for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
      const parent = this.#sessions.get(root)?.parentId ?? null;
      if (parent === null) break;
      root = parent;
    }
    return root;
  }

  /** True if the root of its tree is known. */
  isKnown(id: string): boolean {
    return this.#sessions.has(this.rootOf(id));
  }
}

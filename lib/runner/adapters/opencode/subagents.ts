import { type Fields, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { remember } from '../remember';
import type { SessionWriter } from '../writer/session-writer';
import type { SessionTree } from './session-tree';
import type { TaskNotice } from './task-notice';

const MAX_SUBAGENTS = 1_000;
const MAX_DESCRIPTION = 500;

/** The call of the tool `task` that set a subagent to work. */
export interface Start {
  /** As it is called in the log. */
  toolUseId: string;
  input: Fields;
}

/** The subagents of one root session: the sessions below it, each of them a task. */
export class Subagents {
  readonly #writer: SessionWriter;
  readonly #tree: SessionTree;
  /** By session, the call that began its newest run. */
  readonly #begunBy = new Map<string, string>();

  constructor(writer: SessionWriter, tree: SessionTree) {
    this.#writer = writer;
    this.#tree = tree;
  }

  /** @param start null where it begins to speak before anything says who called it */
  begin(session: string, start: Start | null): void {
    const before = this.#begunBy.get(session);
    if (this.#writer.runs(session) || (before !== undefined && (start === null || start.toolUseId === before))) return;
    remember(this.#begunBy, session, start?.toolUseId ?? '', MAX_SUBAGENTS);
    const { title = null, agent = null, parentId = null } = this.#tree.get(session) ?? {};
    const named = textOf(start?.input.description) ?? title?.replace(/ \(@[^()]* subagent\)$/, '') ?? session;
    const type = textOf(start?.input.subagent_type) ?? agent;
    const isNested = parentId !== null && parentId !== this.#tree.rootOf(session);
    this.#writer.taskStarted({
      task_id: session,
      // Set to work again under the same id, it is another run.
      ...(before === undefined || start === null ? {} : { run_id: start.toolUseId }),
      ...(start === null ? {} : { tool_use_id: start.toolUseId }),
      description: truncateText(named, MAX_DESCRIPTION),
      task_type: 'local_agent',
      ...(type === null ? {} : { subagent_type: truncateText(type, 100) }),
      ...(isNested ? { parent_task_id: parentId } : {}),
    });
  }

  runs(session: string): boolean {
    return this.#writer.runs(session);
  }

  ended({ taskId, status, result }: TaskNotice): void {
    if (status === 'running') return;
    // One that was never heard of: begun before anything was followed.
    if (!this.#begunBy.has(taskId) && this.#tree.get(taskId) === undefined) return;
    const said = result === '' ? {} : status === 'failed' ? { error: result } : { summary: result };
    this.#writer.taskCompleted({ task_id: taskId, status, ...said });
  }

  lost(session: string, error: string): void {
    this.#writer.taskCompleted({ task_id: session, status: 'lost', error });
  }
}

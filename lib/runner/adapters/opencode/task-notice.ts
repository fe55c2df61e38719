import { truncateText } from '@interlude/protocol/text';

/** How a background subagent ended, as OpenCode writes it into the parent's conversation. */
export interface TaskNotice {
  taskId: string;
  status: 'completed' | 'failed' | 'stopped' | 'running';
  /** What it said last, or why it failed. */
  result: string;
}

const HEAD = /<task id="([^"<>]{1,256})" state="([a-z_-]{1,40})">/g;
const STATES: Record<string, TaskNotice['status']> = {
  completed: 'completed',
  running: 'running',
  cancelled: 'stopped',
  aborted: 'stopped',
};
const MAX_RESULT = 2_000;

/** @param text of a synthetic message, or the output of the tool `task` */
export function taskNotices(text: string): TaskNotice[] {
  const heads = [...text.matchAll(HEAD)];
  return heads.map(({ 0: head, 1: taskId = '', 2: state = '', index }, at) => {
    const body = text.slice(index + head.length, heads[at + 1]?.index ?? text.length);
    const status = Object.hasOwn(STATES, state) ? (STATES[state] ?? 'failed') : 'failed';
    return {
      taskId,
      status,
      result: truncateText(
        inner(body, 'task_result') ?? inner(body, 'task_error') ?? inner(body, 'summary') ?? '',
        MAX_RESULT,
      ),
    };
  });
}

function inner(text: string, tag: string): string | null {
  const from = text.indexOf(`<${tag}>`);
  const to = text.indexOf(`</${tag}>`);
  return from < 0 || to < from ? null : text.slice(from + tag.length + 2, to).trim();
}

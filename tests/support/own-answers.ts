import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { requestOpened } from './wire-runner';

/** Events of agents other than Claude Code: answers of their own, and turns that Interlude started. */

const OPTIONS = [
  { id: 'once', label: 'Yes, this once', kind: 'allow' },
  { id: 'session', label: 'Yes, and don’t ask again for npm', kind: 'allow', isLasting: true },
  { id: 'no', label: 'No, tell it what to do instead', kind: 'deny' },
];

/** Opens a permission that offers three answers of the agent's own. */
export const asks = (id: string, command: string): AgUiEvent =>
  requestOpened({
    request_id: id,
    kind: 'permission',
    tool_name: 'shell',
    title: `Run ${command}?`,
    input: { command },
    options: OPTIONS,
  });

/** A user turn that starts or ends. */
export const user = (type: 'RUN_STARTED' | 'RUN_FINISHED', runId: string, more: object = {}): AgUiEvent => ({
  type,
  threadId: 's',
  runId,
  metadata: { interlude: { turn: 'user', userMessageIds: [`${runId}/m`], ...more } },
});

/** A turn that Interlude started because a task ended. */
export const woken = (type: 'RUN_STARTED' | 'RUN_FINISHED', runId: string, taskId: string): AgUiEvent => ({
  type,
  threadId: 's',
  runId,
  metadata: {
    interlude: { turn: 'between-run', trigger: { kind: 'task', taskIds: [taskId], wokenBy: 'interlude' } },
  },
});

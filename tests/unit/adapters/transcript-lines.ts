import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { TranscriptAdapter } from '@interlude/runner/adapters/claude/transcript-adapter';
import { type Story, tell } from './story';

/** Reads transcript lines one by one; line n has the uuid `un` and a timestamp n seconds after the epoch. */
export class ReadLines {
  readonly adapter = new TranscriptAdapter({ sessionId: 's1' });
  readonly events: TimedEvent[] = [];
  #count = 0;

  read(...lines: readonly object[]): this {
    for (const line of lines) {
      this.#count += 1;
      const timestamp = new Date(this.#count * 1_000).toISOString();
      const key = `u${this.#count}`;
      const about = { uuid: key, parentUuid: `u${this.#count - 1}`, timestamp };
      this.events.push(...this.adapter.read({ ...about, ...line }, key, this.#count * 1_000));
    }
    return this;
  }

  get story(): Story {
    // A turn that gains answers repeats its start.
    const starts = this.events.filter(({ event }) => event.type === 'RUN_STARTED');
    const isAgain = (one: TimedEvent) =>
      starts.some(({ event }, index) => starts[index + 1] === one && event.runId === one.event.runId);
    const last = (one: TimedEvent) => starts.findLast(({ event }) => event.runId === one.event.runId) ?? one;
    const isStart = ({ event }: TimedEvent) => event.type === 'RUN_STARTED';
    return tell(this.events.flatMap((one) => (!isStart(one) ? one : isAgain(one) ? [] : last(one))));
  }

  /** Each turn with cause, answered texts and outcome: `user "Go": success`. */
  get turns(): string[] {
    const { turns, userMessages } = this.story;
    return turns.map(({ kind, trigger, startTrigger, userMessageIds, end }) => {
      const { kind: cause, taskIds = [] } = trigger ?? startTrigger ?? {};
      const said = userMessages.filter(({ id }) => userMessageIds.includes(id)).map(({ text }) => JSON.stringify(text));
      const by = kind === 'user' ? ['user', ...said] : [cause, ...taskIds];
      return `${by.join(' ')}: ${typeof end === 'string' ? end : end.code}`;
    });
  }

  /** Each task with its ends: `b1 stopped`, `b1 running`. */
  get tasks(): string[] {
    return Object.values(this.story.tasks).map(({ task_id: id, ends }) => `${id} ${ends.join(', ') || 'running'}`);
  }
}

export const user = (content: unknown, more: object = {}) => ({
  type: 'user',
  message: { role: 'user', content },
  ...more,
});
export const typed = (content: unknown, more: object = {}) =>
  user(content, { origin: { kind: 'human' }, promptSource: 'typed', turnOrigin: 'human', ...more });
export const says = (text: string) => ({
  type: 'assistant',
  message: { id: `m ${text}`, stop_reason: 'end_turn', content: [{ type: 'text', text }] },
});
export const calls = (id: string, name: string, input: object = {}) => ({
  type: 'assistant',
  message: { id: `m ${id}`, stop_reason: 'tool_use', content: [{ type: 'tool_use', id, name, input }] },
});
export const returns = (id: string, content: unknown, toolUseResult?: unknown, more: object = {}) =>
  user([{ type: 'tool_result', tool_use_id: id, content }], {
    ...(toolUseResult === undefined ? {} : { toolUseResult }),
    ...more,
  });
export const over = { type: 'system', subtype: 'turn_duration', durationMs: 5 };
export const notice = (id: string, fields = '<status>completed</status>') =>
  `<task-notification>\n<task-id>${id}</task-id>\n${fields}\n</task-notification>`;
export const woken = (text: string, more: object = {}) =>
  user(text, {
    origin: { kind: 'task-notification' },
    promptSource: 'system',
    turnOrigin: 'task_notification',
    ...more,
  });
/** A background command with this id. */
export const launches = (id: string, more: object = {}) => [
  { ...calls(`call ${id}`, 'Bash', { command: 'sleep 9', description: id, run_in_background: true }), ...more },
  returns(
    `call ${id}`,
    `Command running in background with ID: ${id}. Output is`,
    { stdout: '', backgroundTaskId: id },
    more,
  ),
];

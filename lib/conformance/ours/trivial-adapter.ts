import { type Fields, fieldsOf, numberOf, textOf, textsOf } from '@interlude/protocol/fields';
import type {
  EmittedEvent,
  WireAdapter,
  WireAdapterOptions,
  WireEnd,
  WireFrame,
} from '@interlude/runner/adapters/wire';
import { SessionWriter } from '@interlude/runner/adapters/writer/session-writer';

const KIND = 'trivial';

/** What the trivial agent says → AG-UI events. Its runs, texts, tasks and requests keep the ids it gives them. */
export class TrivialAdapter implements WireAdapter {
  readonly #writer: SessionWriter;
  readonly dueAt = null;

  constructor({ sessionOf, newRunId }: WireAdapterOptions) {
    this.#writer = new SessionWriter({ sessionId: sessionOf(KIND), newRunId });
  }

  read({ dir, msg }: WireFrame, now: number): EmittedEvent[] {
    const told = fieldsOf(msg);
    const writer = this.#writer;
    writer.at(now);
    const type = textOf(told.type) ?? '';
    const tell = dir === 'in' && Object.hasOwn(TELL, type) ? TELL[type] : undefined;
    if (tell !== undefined) tell(writer, told);
    else if (dir === 'in' && type !== 'log') writer.raw(msg, KIND);
    else if (type === 'message') writer.dashboardMessage(textOf(told.id) ?? '', textOf(told.text) ?? '');
    return writer.take();
  }

  elapsed(): EmittedEvent[] {
    return [];
  }

  ended(end: WireEnd, now: number): EmittedEvent[] {
    this.#writer.at(now);
    this.#writer.end(end);
    return this.#writer.take();
  }
}

const text = (value: unknown) => textOf(value) ?? '';

const TELL: Record<string, (writer: SessionWriter, told: Fields) => void> = {
  'turn-start': (writer, { turn, messages, task }) => {
    const trigger = { kind: 'task' as const, taskIds: textsOf([task]) };
    const isUser = textOf(task) === null;
    const cause = isUser
      ? { kind: 'user' as const, userMessageIds: textsOf(messages) }
      : { kind: 'between-run' as const, trigger };
    writer.begin(cause, textOf(turn) ?? undefined);
  },
  say: (writer, { id, text: words }) => {
    writer.parts().setText('text', text(id), text(words));
    writer.parts().endText();
  },
  'task-start': (writer, { task, description }) =>
    writer.taskStarted({ task_id: text(task), description: text(description), task_type: 'local_bash' }),
  'task-end': (writer, { task, status, exitCode, summary }) =>
    writer.taskCompleted({
      task_id: text(task),
      status: status === 'stopped' ? 'stopped' : status === 'failed' ? 'failed' : 'completed',
      exit_code: numberOf(exitCode),
      summary: text(summary),
    }),
  ask: (writer, { request, kind, tool, input, title }) =>
    writer.requested({
      request_id: text(request),
      kind: kind === 'question' ? 'question' : 'permission',
      tool_name: textOf(tool) ?? undefined,
      title: text(title),
      input,
    }),
  answered: (writer, { request, outcome }) => {
    const said = OUTCOMES.find((one) => one === outcome) ?? 'unknown';
    writer.resolved(text(request), said);
  },
  'turn-end': (writer, { status, reason }) => {
    if (status === 'failed') writer.finish({ kind: 'failed', message: text(reason) });
    else writer.finish({ kind: status === 'interrupted' ? 'cancelled' : 'success' });
  },
};

const OUTCOMES = ['allowed', 'denied', 'answered', 'cancelled'] as const;

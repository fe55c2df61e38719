import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf } from '@interlude/protocol/fields';
import { agree } from '../check';
import type { Answer, ServerStage } from './server-stage';
import type { SseReader } from './sse-reader';

/** What a runner would say of an agent, one record. `seq` is given by the outbox that sends it. */
export type PlayedRecord = Fields & { kind: string };

/** An outbox that does as it is told, right or wrong. */
export class PlayedOutbox {
  readonly id: string;
  epoch = Date.now();
  next = 1;
  readonly #stage: ServerStage;

  constructor(stage: ServerStage, id: string) {
    this.#stage = stage;
    this.id = id;
  }

  /** Numbers them on from the last ones. */
  numbered(records: readonly PlayedRecord[]): Fields[] {
    return records.map((record) => ({ seq: this.next++, ...record }));
  }

  /** Sends records as they are, numbers included. */
  async post(records: readonly Fields[], epoch = this.epoch): Promise<Answer> {
    return await this.#stage.post('/events', { producer: { id: this.id, epoch }, records });
  }

  /** Sends the next records. @throws Unmet if they are not all taken */
  async send(...records: PlayedRecord[]): Promise<Fields> {
    const answer = await this.post(this.numbered(records));
    const todo = 'Take records that are numbered on from the last ones.';
    agree('the answer', { status: answer.status, ...answer.body }, { status: 200, ackedSeq: this.next - 1 }, todo);
    return answer.body;
  }
}

/** An agent with one session, played over the wire. Its ids are its own. */
export class PlayedAgent {
  readonly id: string;
  readonly sessionId: string;
  readonly outbox: PlayedOutbox;
  readonly runner: { id: string; startedAt: number };
  readonly #stage: ServerStage;

  constructor(stage: ServerStage, id: string) {
    this.#stage = stage;
    this.id = id;
    this.sessionId = `${id}/session`;
    this.outbox = new PlayedOutbox(stage, `${id}/outbox`);
    this.runner = { id: `${id}/runner`, startedAt: Date.now() };
  }

  event(event: AgUiEvent, sessionId = this.sessionId): PlayedRecord {
    return { kind: 'event', agentId: this.id, sessionId, occurredAt: Date.now(), event };
  }

  status(status: Fields): PlayedRecord {
    return { kind: 'status', agentId: this.id, sessionId: this.sessionId, occurredAt: Date.now(), status };
  }

  log(message: string, level = 'info'): PlayedRecord {
    return { kind: 'log', agentId: this.id, occurredAt: Date.now(), log: { level, component: 'conformance', message } };
  }

  /** Sends events of its session. */
  async tell(...events: AgUiEvent[]): Promise<Fields> {
    return await this.outbox.send(...events.map((event) => this.event(event)));
  }

  /** Its commands, as its runner gets them. */
  async listen(runner = this.runner, query: Record<string, string> = {}): Promise<SseReader> {
    const { id, startedAt } = runner;
    const asked = new URLSearchParams({ runner: id, startedAt: String(startedAt), ...query });
    return await this.#stage.stream(`/agents/${encodeURIComponent(this.id)}/commands?${asked}`);
  }

  async acknowledge(commandId: string, state: string, more: Fields = {}, runner = this.runner): Promise<Answer> {
    const path = `/agents/${encodeURIComponent(this.id)}/commands/${encodeURIComponent(commandId)}/ack`;
    return await this.#stage.post(path, { state, runner: runner.id, startedAt: runner.startedAt, ...more });
  }

  /** The session's own part of an address. */
  get path(): string {
    return `/sessions/${encodeURIComponent(this.sessionId)}`;
  }

  /** Its turns, as they are shown. */
  async turns(): Promise<Fields[]> {
    const { body } = await this.#stage.read(`${this.path}/transcript`);
    return (body.turns as Fields[] | undefined) ?? [];
  }

  async session(): Promise<Fields> {
    return fieldsOf((await this.#stage.read(this.path)).body.session);
  }
}

export const started = (runId: string, interlude: Fields = { turn: 'user' }): AgUiEvent => ({
  type: 'RUN_STARTED',
  threadId: 'conformance',
  runId,
  metadata: { interlude },
});

export const finished = (runId: string, interlude: Fields = {}, more: Fields = {}): AgUiEvent => ({
  type: 'RUN_FINISHED',
  threadId: 'conformance',
  runId,
  metadata: { interlude },
  ...more,
});

export const text = (messageId: string, words: string, role = 'assistant'): AgUiEvent[] => [
  { type: 'TEXT_MESSAGE_START', messageId, role },
  { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: words },
  { type: 'TEXT_MESSAGE_END', messageId },
];

export const custom = (name: string, value: Fields): AgUiEvent => ({ type: 'CUSTOM', name, value });

/** The items of a turn, each in a few words: `message hello`. */
export function itemsOf(turn: Fields | undefined): string[] {
  return ((turn?.items as Fields[] | undefined) ?? []).map(({ kind, text: said, phase, title, id, name }) =>
    [kind, said ?? phase ?? title ?? name ?? id].join(' '),
  );
}

import type {
  Item,
  MessageItem,
  RequestItem,
  SessionSummary,
  Task,
  TaskItem,
  TaskOutputDetail,
  Turn,
} from '@interlude/protocol/read-models';
import { expect } from 'vitest';
import type { LiveServer } from './live-server';
import { WAIT_MS } from './timeouts';

/** A user of the dashboard's API. Reads what a page would show. */
export class Operator {
  readonly #server: Pick<LiveServer, 'url' | 'token'>;
  readonly sessionId: string;
  #sent = 0;

  constructor(server: Pick<LiveServer, 'url' | 'token'>, sessionId: string) {
    this.#server = server;
    this.sessionId = sessionId;
  }

  /** @returns the message's id */
  async send(text: string): Promise<string> {
    this.#sent += 1;
    const body = { text, clientId: `${this.sessionId}-${this.#sent}` };
    return ((await this.#post('messages', body)) as { messageId: string }).messageId;
  }

  interrupt(): Promise<unknown> {
    return this.#post('interrupt', {});
  }

  stop(taskId: string): Promise<unknown> {
    return this.#post(`tasks/${encodeURIComponent(taskId)}/stop`, {});
  }

  answer(requestId: string, body: object): Promise<unknown> {
    return this.#post(`requests/${encodeURIComponent(requestId)}`, body);
  }

  async session(): Promise<SessionSummary | null> {
    const answer = await this.#get('');
    return answer === null ? null : (answer as { session: SessionSummary }).session;
  }

  async turns(): Promise<Turn[]> {
    return ((await this.#get('/transcript?limit=100')) as { turns: Turn[] } | null)?.turns ?? [];
  }

  async tasks(): Promise<Task[]> {
    return ((await this.#get('/tasks')) as { tasks: Task[] } | null)?.tasks ?? [];
  }

  /** A task's stored output. */
  async output(taskId: string): Promise<string> {
    const detail = (await this.#get(`/tasks/${encodeURIComponent(taskId)}/output`)) as TaskOutputDetail | null;
    return detail?.output?.parts.map(({ text }) => text).join('') ?? '';
  }

  /** Polls the transcript until `look` returns a value. */
  async until<Found>(what: string, look: (turns: Turn[]) => Found | null | undefined | false): Promise<Found> {
    const deadline = Date.now() + WAIT_MS;
    let turns: Turn[] = [];
    while (Date.now() < deadline) {
      turns = await this.turns().catch(() => turns);
      const found = look(turns);
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    throw new Error(`timed out waiting for ${what}; the transcript is\n${lines(turns).join('\n')}`);
  }

  /** Resolves once `count` turns have ended and none is open. */
  finished(count: number): Promise<Turn[]> {
    return this.until(`${count} turns`, (turns) => {
      const real = turns.filter(({ kind }) => kind !== 'none');
      return real.length >= count && real.every(({ state }) => state !== 'open') && real;
    });
  }

  async #get(path: string): Promise<unknown> {
    const response = await fetch(this.#address(path), { headers: this.#headers });
    if (response.status === 404) return null;
    if (!response.ok) throw new Error(`${path} answered ${response.status}`);
    return await response.json();
  }

  async #post(path: string, body: object): Promise<unknown> {
    const headers = { ...this.#headers, 'content-type': 'application/json' };
    const response = await fetch(this.#address(`/${path}`), { method: 'POST', headers, body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
    return JSON.parse(text);
  }

  #address(path: string): string {
    return `${this.#server.url}/api/v1/sessions/${encodeURIComponent(this.sessionId)}${path}`;
  }

  get #headers(): Record<string, string> {
    return { authorization: `Bearer ${this.#server.token}` };
  }
}

export function messages(turns: readonly Turn[], role: MessageItem['role']): MessageItem[] {
  return itemsOf(turns).filter((item): item is MessageItem => item.kind === 'message' && item.role === role);
}

export function requests(turns: readonly Turn[]): RequestItem[] {
  return itemsOf(turns).filter((item): item is RequestItem => item.kind === 'request');
}

export function taskEnds(turns: readonly Turn[]): TaskItem[] {
  return itemsOf(turns).filter((item): item is TaskItem => item.kind === 'task' && item.phase !== 'started');
}

export function notices(turns: readonly Turn[]): string[] {
  return itemsOf(turns).flatMap((item) => (item.kind === 'notice' ? [item.text] : []));
}

/** The turn's assistant texts, joined by newlines. */
export function assistantText(turn: Turn | undefined): string {
  return messages(turn ? [turn] : [], 'assistant')
    .map(({ text }) => text)
    .join('\n');
}

/** The turn that answers a message. */
export function answering(turns: readonly Turn[], messageId: string): Turn | undefined {
  return turns.find(({ userMessageIds }) => userMessageIds.includes(messageId));
}

function itemsOf(turns: readonly Turn[]): Item[] {
  return turns.flatMap(({ items }) => items);
}

function lines(turns: readonly Turn[]): string[] {
  return turns.flatMap((turn) => [
    `${turn.kind} ${turn.state} ${turn.userMessageIds.join(' ')}`,
    ...turn.items.map((item) => `  ${JSON.stringify(item).slice(0, 300)}`),
  ]);
}

/** Kind and state of each turn, such as `user finished`. */
export function turnStates(turns: readonly Turn[]): string[] {
  return turns.map(({ kind, state }) => `${kind} ${state}`);
}

/** Assistant texts by turn; reveals texts that are missing, duplicated or one turn late. */
export function textsByTurn(turns: readonly Turn[]): string[][] {
  return turns.map((turn) => messages([turn], 'assistant').map(({ text }) => text));
}

/** Expects the user message once, in the turn that answers it. */
export function expectAnswered(turns: readonly Turn[], messageId: string, reply: string): void {
  const homes = turns.filter((one) => messages([one], 'user').some(({ id }) => id === messageId));
  expect(homes).toHaveLength(1);
  expect(homes[0]?.userMessageIds).toContain(messageId);
  expect(assistantText(homes[0])).toContain(reply);
  expect(messages(turns, 'user').find(({ id }) => id === messageId)?.delivery).toBe('seen');
}

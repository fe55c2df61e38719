import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { InboxList } from '@interlude/protocol/inbox';
import type { ParkedList } from '@interlude/protocol/read-models';
import fc from 'fast-check';
import type { AccessStage, Headers } from './access-stage';

const WHATS = [
  'question',
  'turn',
  'delta',
  'message-end',
  'turn-end',
  'turn-error',
  'task',
  'task-output',
  'task-end',
  'request',
  'resolve',
  'log',
  'hook-failure',
  'status',
  'lost',
  'novelty',
  'stray-task',
  'stolen-session',
  'send-message',
  'interrupt',
  'answer',
  'stop-task',
  'snooze',
  'claim',
  'arrange',
  'log-level',
  'waive',
  'discard',
  'acknowledge',
  'level-command',
] as const;

/** An agent's event or a user's request. */
export interface TenantAction {
  agent: number;
  session: number;
  what: (typeof WHATS)[number];
  /** Index of the target among a few. */
  of: number;
}

export const arbitraryAction: fc.Arbitrary<TenantAction> = fc.record({
  agent: fc.nat(1),
  session: fc.nat(1),
  what: fc.constantFrom(...WHATS),
  of: fc.nat(2),
});

/** A tenant: runners and users of some agents. All tenants use the same ids within a session. */
export class Tenant {
  readonly #stage: AccessStage;
  readonly #people: Headers;
  readonly #runner: Headers;
  readonly #mark: string;
  readonly agentIds: readonly string[];
  readonly #seqs = new Map<string, number>();
  #count = 0;
  #last: object | null = null;

  /**
   * @param people credentials of a user with full access to the tenant
   * @param runner credentials of the runner, if different
   * @param mark added to ids, for tenants that share agents
   */
  constructor(stage: AccessStage, agentIds: readonly string[], people: Headers, { runner = people, mark = '' } = {}) {
    this.#runner = runner;
    this.#mark = mark;
    this.#stage = stage;
    this.agentIds = agentIds;
    this.#people = people;
  }

  get sessionIds(): string[] {
    return this.agentIds.flatMap((agentId) => sessionsOf(agentId));
  }

  async arrive(): Promise<void> {
    for (const agentId of this.agentIds) {
      const status = { kind: 'claude', logLevel: 'info', sessions: 3 };
      const records = sessionsOf(agentId).map((sessionId) => ({ kind: 'status', sessionId, status }));
      await this.#send(agentId, [...records, { kind: 'log', log: { level: 'info', message: 'begins' } }]);
    }
  }

  /** @returns the response to a user's request */
  async do({ agent, session, what, of }: TenantAction): Promise<string> {
    const agentId = this.agentIds[agent % this.agentIds.length] as string;
    const sessionId = sessionsOf(agentId)[session] as string;
    this.#count += 1;
    const [messageId, runId, taskId, requestId] = ['m', 'r', 't', 'q'].map(
      (letter) => `${letter}${this.#mark}${of}`,
    ) as [string, string, string, string];
    const interlude = { turn: 'user' as const, userMessageIds: [messageId] };
    const event = (...events: AgUiEvent[]) =>
      this.#send(
        agentId,
        events.map((one) => ({ kind: 'event', sessionId, event: one })),
      );
    const custom = (name: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name, value });
    const log = (level: string, more: object) =>
      this.#send(agentId, [
        { kind: 'log', log: { level, component: `c${of}`, message: `line ${this.#count}`, ...more } },
      ]);
    const ask = (path: string, body: object, method = 'POST') => this.#ask(path, body, method);
    const [s, a] = [`/sessions/${encodeURIComponent(sessionId)}`, `/agents/${encodeURIComponent(agentId)}`];
    const clientId = `c${this.#count}`;
    switch (what) {
      case 'question':
        return event(
          { type: 'TEXT_MESSAGE_START', messageId, role: 'user', name: 'Ada' },
          { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: `question ${this.#count}` },
          { type: 'TEXT_MESSAGE_END', messageId },
        );
      case 'turn':
        return event({ type: 'RUN_STARTED', threadId: sessionId, runId, metadata: { interlude } });
      case 'delta':
        return event(
          { type: 'TEXT_MESSAGE_START', messageId: `a${of}`, role: 'assistant' },
          { type: 'TEXT_MESSAGE_CONTENT', messageId: `a${of}`, delta: `words ${this.#count}` },
        );
      case 'message-end':
        return event({ type: 'TEXT_MESSAGE_END', messageId: `a${of}` });
      case 'turn-end':
        return event({ type: 'RUN_FINISHED', threadId: sessionId, runId, metadata: { interlude } });
      case 'turn-error':
        return event({ type: 'RUN_ERROR', runId, message: `failure ${this.#count}` });
      case 'task':
        return event(custom('task:started', { task_id: taskId, description: `task ${this.#count}` }));
      case 'task-output':
        return event(custom('task:output', { task_id: taskId, offset: 0, text: `output ${this.#count}` }));
      case 'task-end':
        return event(custom('task:completed', { task_id: taskId, status: 'completed', summary: `${this.#count}` }));
      case 'request':
        return event(
          custom('request:opened', { request_id: requestId, kind: 'permission', tool_name: 'Bash', input: { of } }),
        );
      case 'resolve':
        return event(custom('request:resolved', { request_id: requestId, outcome: 'allowed' }));
      case 'log':
        return log(of === 0 ? 'error' : 'info', {});
      case 'hook-failure':
        return log('fatal', { component: `hook:h${of}` });
      case 'status':
        return this.#send(agentId, [{ kind: 'status', sessionId, status: { kind: 'claude', mode: `${of}` } }]);
      case 'lost':
        return this.#send(agentId, [{ kind: 'lost', sessionId, lost: { count: of + 1, reason: 'outbox-full' } }]);
      case 'novelty':
        return this.#send(agentId, [{ kind: 'novelty', sessionId, of }]);
      case 'stray-task':
        return event(custom('task:completed', { task_id: `stray${of}`, status: 'completed' }));
      case 'stolen-session': {
        const other = this.agentIds[(agent + 1) % this.agentIds.length] ?? agentId;
        const stolen = { type: 'CUSTOM', name: 'marker', value: of };
        return this.#send(agentId, [{ kind: 'event', sessionId: sessionsOf(other)[0], event: stolen }]);
      }
      case 'send-message':
        return ask(`${s}/messages`, { text: `please ${this.#count}`, clientId });
      case 'interrupt':
        return ask(`${s}/interrupt`, { clientId });
      case 'answer':
        return ask(`${s}/requests/${requestId}`, { behavior: 'allow', clientId });
      case 'stop-task':
        return ask(`${s}/tasks/${taskId}/stop`, { clientId });
      case 'arrange':
        return ask(`${s}/arrangement`, { name: `name ${of}`, pinned: of === 0 }, 'PUT');
      case 'log-level':
        return ask(`${a}/log-level`, { level: 'debug', ttlSeconds: 600 }, 'PUT');
      case 'waive':
        return ask(`${s}/obligations/${messageId}/waive`, { clientId });
      case 'snooze':
      case 'claim':
        return this.#markItem(sessionId, of, what);
      case 'discard': {
        const { records } = await this.#stage.ask<ParkedList>(`${a}/parked`, { as: this.#people });
        const own = records.filter((record) => record.sessionId === sessionId);
        return ask(`${a}/parked/${own[of]?.position ?? '0'}/discard`, { clientId });
      }
      case 'acknowledge':
      case 'level-command': {
        const id = await (what === 'acknowledge'
          ? this.#commandOf(agentId, sessionId)
          : this.#commandOf(agentId, null));
        return this.#ask(`${a}/commands/${id}/ack`, { state: of === 0 ? 'delivered' : 'done' }, 'POST', this.#runner);
      }
    }
  }

  /** Repeats the last request, as an outbox without a response does. */
  async repeat(): Promise<string> {
    return this.#last === null ? '' : this.#ask('/events', this.#last, 'POST', this.#runner);
  }

  async #markItem(sessionId: string, of: number, what: 'snooze' | 'claim'): Promise<string> {
    const { items } = await this.#stage.ask<InboxList>(`/inbox?session=${encodeURIComponent(sessionId)}`, {
      as: this.#people,
    });
    const id = items[of]?.id;
    if (id === undefined) return '';
    const mark =
      what === 'snooze'
        ? { mark: 'snoozed', until: 2_000_000_000_000 + of }
        : { mark: 'claimed', by: { id: `${of}`, name: 'Ada' } };
    return this.#ask('/inbox/marks', { ids: [id], ...mark }, 'POST');
  }

  /** The latest command for a session, or for the agent. */
  async #commandOf(agentId: string, sessionId: string | null): Promise<string> {
    const { rows } = await this.#stage.parts.database.reader.execute({
      sql: `SELECT id FROM commands WHERE agent_id = ? AND session_id IS ? AND type IN ('message', 'log-level.set')
        ORDER BY position DESC LIMIT 1`,
      args: [agentId, sessionId],
    });
    return String(rows[0]?.id ?? 'none');
  }

  async #send(agentId: string, records: readonly object[]): Promise<string> {
    let seq = this.#seqs.get(agentId) ?? 0;
    const numbered = records.map((record) => ({ agentId, occurredAt: 1_795_170_000_000 + seq, ...record, seq: ++seq }));
    this.#seqs.set(agentId, seq);
    this.#last = { producer: { id: `${agentId}/outbox${this.#mark}`, epoch: 1 }, records: numbered };
    return this.#ask('/events', this.#last, 'POST', this.#runner);
  }

  async #ask(path: string, body: object, method: string, as = this.#people): Promise<string> {
    const response = await this.#stage.send(`/api/v1${path}`, { method, as, body });
    return `${response.status} ${await response.text()}`;
  }
}

export function sessionsOf(agentId: string): string[] {
  return ['one', 'two', 'three'].map((what) => `${agentId}/${what}`);
}

/** Paths of all read routes with these agents' ids. */
export function readingPaths(agentIds: readonly string[]): string[] {
  const lists = ['/sessions', '/agents', '/inbox', '/activity', '/webhook', '/webhook/deliveries'];
  const searches = ['/sessions?q=name', '/sessions?state=working&state=failed', '/agents?q=one', '/inbox?q=line'];
  const ofAgents = agentIds.flatMap((agentId) => {
    const agent = `/agents/${encodeURIComponent(agentId)}`;
    const below = [
      '',
      '/parked',
      '/parked?state=discarded',
      '/reply-obligations',
      '/log-level',
      '/logs',
      '/logs/components',
    ];
    const logs = ['/logs?q=line', '/logs?regex=line', '/logs?level=error', '/logs?line=2', '/logs/download'];
    const lists = [`/sessions?agent=${encodeURIComponent(agentId)}`, `/inbox?agent=${encodeURIComponent(agentId)}`];
    return [...[...below, ...logs].map((path) => agent + path), ...lists];
  });
  const ofSessions = agentIds.flatMap(sessionsOf).flatMap((sessionId) => {
    const session = `/sessions/${encodeURIComponent(sessionId)}`;
    const few = ['t0', 't1'].flatMap((task) => [`/tasks/${task}`, `/tasks/${task}/output`]);
    const below = [
      '',
      '/transcript',
      '/delivery',
      '/tasks',
      '/obligations',
      '/turn-at?at=1795170000005',
      '/requests/q0',
    ];
    return [...below, ...few].map((path) => session + path);
  });
  return [...lists, ...searches, ...ofAgents, ...ofSessions];
}

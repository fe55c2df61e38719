import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Fields, fieldsOf, textOf, textsOf } from '@interlude/protocol/fields';
import { endsOf } from '@interlude/protocol/lifecycle/open-session';
import type { CommandOutcome } from '@interlude/runner/commands/seen-commands';
import { RestartPolicy } from '@interlude/runner/host/agent-lifecycle';
import { InFlightMessages } from '@interlude/runner/host/message-delivery';
import { PendingRequests, type RequestAnswer } from '@interlude/runner/host/pending-requests';
import type { CommandOf, SessionFacts, Source, SourceContext } from '@interlude/runner/host/source';
import { parseLevel } from '@interlude/runner/logger/level-switch';
import { AgentProcess, agentEnvironment, exitText } from '@interlude/runner/wire/agent-process';
import { JsonLines } from '@interlude/runner/wire/json-lines';
import { WireFeed } from '@interlude/runner/wire/wire-feed';
import { TrivialAdapter } from './trivial-adapter';

/**
 * The trivial agent behind our runner: what is checked here is everything around a source, which all kinds share.
 *
 * Ordering: what the agent writes is told in the order of its lines, by one reader for as long as its process lives.
 * Failure: what a killed runner left open is closed before the agent is started. An agent that ends is started again,
 * and gets what it had not begun with.
 */
export interface TrivialSourceOptions {
  surroundings: SourceContext;
  sessionId: string;
  /** As a shell reads it. */
  agent: string;
  env: Record<string, string | undefined>;
}

export class TrivialSource implements Source {
  readonly #options: TrivialSourceOptions;
  readonly #around: SourceContext;
  readonly #feed: WireFeed;
  readonly #requests = new PendingRequests();
  readonly #restarts = new RestartPolicy();
  readonly #ending = new AbortController();
  readonly refusals = {
    'session.end': 'the trivial agent ends with its runner',
    'task.wake': 'the trivial agent is told of its tasks and wakes by itself',
    'wake-rule.set': 'the trivial agent is told of its tasks and wakes by itself',
  };
  #inHand: InFlightMessages | null = null;
  #agent: AgentProcess | null = null;
  #life: Promise<void> = Promise.resolve();
  #endsFor = 'the runner was stopped';

  constructor(options: TrivialSourceOptions) {
    this.#options = options;
    this.#around = options.surroundings;
    const { sessionId } = options;
    const adapter = new TrivialAdapter({ sessionOf: () => sessionId, newRunId: randomUUID });
    this.#feed = new WireFeed({ adapter, around: options.surroundings });
  }

  get sessions(): SessionFacts[] {
    const pid = this.#agent?.pid ?? null;
    const process = { state: pid === null ? ('restarting' as const) : ('running' as const), pid, exitCode: null };
    return [{ sessionId: this.#options.sessionId, process, attachments: [] }];
  }

  async start(): Promise<void> {
    const { sessionId } = this.#options;
    this.#inHand = await InFlightMessages.recall(this.#around, sessionId);
    const left = endsOf(this.#around.openWork(sessionId), sessionId, Date.now());
    if (left.length > 0) await this.#around.emit(sessionId, left);
    this.#life = this.#live();
  }

  async close(_deadlineMs: number, reason: string): Promise<void> {
    this.#endsFor = reason;
    this.#ending.abort();
    await this.#life;
    this.#feed.close();
  }

  async say({ body: { messageId, text } }: CommandOf<'message'>, again: boolean): Promise<CommandOutcome> {
    const isKnown = again && (this.#inHand?.has(messageId) ?? false);
    if (!isKnown) {
      await this.#inHand?.put({ messageId, text });
      this.#write({ type: 'message', id: messageId, text });
    }
    return { state: 'delivered' };
  }

  async interrupt({ body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const running = this.#around.openWork(this.#options.sessionId).turn?.runId ?? null;
    if (running === null || (body.turnId ?? running) !== running) {
      return { state: 'failed', reason: 'the turn it was meant for has ended' };
    }
    this.#write({ type: 'interrupt' });
    return { state: 'done' };
  }

  async stop({ body: { taskId } }: CommandOf<'task.stop'>): Promise<CommandOutcome> {
    const runs = this.#around.openWork(this.#options.sessionId).tasks.some(({ id }) => id === taskId);
    if (!runs) return { state: 'failed', reason: 'this task does not run any more' };
    this.#write({ type: 'stop', task: taskId });
    return { state: 'done' };
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    const refusal = await this.#requests.answer(command);
    return refusal === null ? { state: 'done' } : { state: 'failed', reason: refusal };
  }

  async #live(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const startedAt = Date.now();
      const exit = await this.#runOnce();
      this.#requests.clear();
      const { exitCode, signal } = exit;
      const reason = exitText(exit);
      if (this.#ending.signal.aborted) {
        await this.#feed.ended({ reason: this.#endsFor, isAsked: true });
        return;
      }
      const next = this.#restarts.exited(startedAt, Date.now());
      if (next.kind === 'give-up') {
        await this.#feed.ended({ reason, exitCode, signal });
        return this.#around.gaveUp(`the trivial agent ended ${next.exits} times, the last time it ${reason}`);
      }
      await this.#feed.ended({ reason, exitCode, signal, goesOn: `It is started again in ${next.waitMs / 1_000} s.` });
      await pause(next.waitMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
    }
  }

  async #runOnce() {
    const { agent: line, env } = this.#options;
    const request = { command: '/bin/sh', args: ['-c', `exec ${line}`], env: agentEnvironment(env) };
    const agent = new AgentProcess({ ...request, signal: this.#ending.signal }, (text) =>
      this.#around.log('debug', `agent: ${text.trim()}`),
    );
    this.#agent = agent;
    this.#around.changed();
    agent.child.stdin.on('error', (error) => this.#around.log('debug', `the agent reads no more: ${error.message}`));
    const lines = new JsonLines({
      onValue: (value) => this.#heard(fieldsOf(value)),
      onUnreadable: (why, text) => this.#around.log('warn', `a line of the agent is ${why}: ${text}`),
    });
    agent.child.stdout.on('data', (chunk: Buffer) => lines.write(chunk));
    agent.child.stdout.on('end', () => lines.end());
    for (const { messageId, text } of this.#inHand?.all ?? []) this.#write({ type: 'message', id: messageId, text });
    const exit = await agent.exited;
    this.#agent = null;
    this.#around.changed();
    return exit;
  }

  #heard(told: Fields): void {
    void this.#feed.pass({ dir: 'in', msg: told });
    if (told.type === 'log') this.#around.log(levelOf(told.level), textOf(told.text) ?? '');
    // What it has begun with is in the transcript, whatever becomes of it.
    if (told.type === 'turn-start') this.#inHand?.remove(textsOf(told.messages));
    const requestId = textOf(told.request);
    if (requestId === null) return;
    const { sessionId } = this.#options;
    if (told.type === 'answered') this.#requests.release(sessionId, requestId);
    if (told.type !== 'ask') return;
    this.#requests.hold({
      sessionId,
      requestId,
      kind: told.kind === 'question' ? 'question' : 'permission',
      tool: textOf(told.tool),
      input: told.input,
      give: (answer) => this.#give(requestId, answer),
    });
  }

  #give(id: string, answer: RequestAnswer): null {
    const said =
      answer.kind === 'question'
        ? { answers: answer.answers }
        : { allow: answer.kind === 'permission' && answer.isAllowed };
    this.#write({ type: 'answer', id, ...said });
    return null;
  }

  /** To an agent that is being started again nothing is written: what waits for it is in hand. */
  #write(told: Fields): void {
    if (this.#agent === null) return;
    void this.#feed.pass({ dir: 'out', msg: told });
    this.#agent.child.stdin.write(`${JSON.stringify(told)}\n`);
  }
}

function levelOf(level: unknown): 'debug' | 'info' | 'warn' | 'error' {
  const known = parseLevel(textOf(level) ?? '');
  return known === null ? 'info' : known === 'fatal' ? 'error' : known;
}

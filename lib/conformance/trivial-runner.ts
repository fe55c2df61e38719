import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { type Fields, fieldsOf, numberOf, textOf, textsOf } from '@interlude/protocol/fields';
import { endsOf } from '@interlude/protocol/lifecycle/open-session';
import type {
  EmittedEvent,
  WireAdapter,
  WireAdapterOptions,
  WireEnd,
  WireFrame,
} from '@interlude/runner/adapters/wire';
import { SessionWriter } from '@interlude/runner/adapters/writer/session-writer';
import { AgentProcess, agentEnvironment, exitText, JsonLines } from '@interlude/runner/host/agent-process';
import { AgentSupervisor } from '@interlude/runner/host/agent-supervisor';
import { claimOutbox } from '@interlude/runner/host/claim-outbox';
import { InFlightMessages } from '@interlude/runner/host/message-delivery';
import { PendingRequests, type RequestAnswer } from '@interlude/runner/host/pending-requests';
import { RunnerHost } from '@interlude/runner/host/runner-host';
import type { CommandOutcome } from '@interlude/runner/host/seen-commands';
import type { Endpoint } from '@interlude/runner/host/server-request';
import type { CommandOf, SessionFacts, Source, SourceContext } from '@interlude/runner/host/source';
import { WireFeed } from '@interlude/runner/host/wire-feed';
import { parseLevel } from '@interlude/runner/logger/level-switch';
import { Redactor } from '@interlude/runner/logger/redactor';

export interface TrivialRunnerOptions {
  url: string;
  token: string | undefined;
  dataDir: string;
  /** The command line of the agent. */
  agent: string;
  env: Record<string, string | undefined>;
  /** Aborts to end the runner. */
  signal: AbortSignal;
}

const NAME = 'conformance-ours';
const END_TIMEOUT_MS = 1_000;

/**
 * Interlude's own runner for the trivial agent: it tests the host, which every kind of agent shares, with a minimal
 * source.
 * @returns once it has ended: null if the signal ended it, else the reason
 */
export async function runTrivialRunner(options: TrivialRunnerOptions): Promise<string | null> {
  const { url, token, dataDir, agent, env, signal } = options;
  const redactor = new Redactor();
  redactor.addSecret(token);
  const endpoint: Endpoint = async () => ({ url, token });
  const host = await RunnerHost.open({
    about: { kind: 'trivial', source: 'conformance' },
    journal: 'trivial',
    meanwhile: 'the agent continues',
    ...{ endpoint, dataDir, redactor },
    level: undefined,
    openOutbox: (listeners) =>
      claimOutbox({
        folder: join(dataDir, 'outboxes'),
        serverKey: url,
        ...{ agentId: NAME, baseId: NAME },
        matches: async () => true,
        listeners,
      }),
  });
  const sessionId = `${NAME}-session`;
  await host.start((context) => new TrivialSource({ context, sessionId, agent, env }));
  const over = AbortSignal.any([signal, host.stopSignal]);
  if (!over.aborted) await new Promise((resolve) => over.addEventListener('abort', resolve, { once: true }));
  await host.close(END_TIMEOUT_MS, END_TIMEOUT_MS);
  return host.stopSignal.aborted ? String(host.stopSignal.reason) : null;
}

interface TrivialSourceOptions {
  context: SourceContext;
  sessionId: string;
  /** A shell command. */
  agent: string;
  env: Record<string, string | undefined>;
}

/**
 * Ordering: one reader emits the agent's lines in order while the agent's process runs.
 * Failure: work left open by a killed runner is closed before the agent starts. An agent that exits is started again,
 * and receives the messages it had not started on.
 */
class TrivialSource implements Source {
  readonly #options: TrivialSourceOptions;
  readonly #context: SourceContext;
  readonly #feed: WireFeed;
  readonly #requests = new PendingRequests();
  readonly #supervisor: AgentSupervisor;
  readonly refusals = {
    'session.end': 'the trivial agent ends with its runner',
    'task.wake': 'the trivial agent wakes up on its own when a task ends',
    'wake-rule.set': 'the trivial agent wakes up on its own when a task ends',
  };
  #unstarted: InFlightMessages | null = null;
  #agent: AgentProcess | null = null;

  constructor(options: TrivialSourceOptions) {
    this.#options = options;
    this.#context = options.context;
    const { sessionId } = options;
    const adapter = new TrivialAdapter({ sessionOf: () => sessionId, newRunId: randomUUID });
    this.#feed = new WireFeed({ adapter, context: options.context });
    this.#supervisor = new AgentSupervisor({
      name: 'the trivial agent',
      context: options.context,
      run: () => this.#runOnce(),
      exited: async (end) => {
        this.#requests.clear();
        await this.#feed.ended(end);
      },
      isIdle: () => true,
      // The supervisor's signal ends the process.
      stop: () => {},
    });
  }

  get sessions(): SessionFacts[] {
    const { process } = this.#supervisor;
    return [{ sessionId: this.#options.sessionId, process, attachments: [] }];
  }

  async start(): Promise<void> {
    const { sessionId } = this.#options;
    this.#unstarted = await InFlightMessages.restore(this.#context, sessionId);
    const ends = endsOf(this.#context.openWork(sessionId), sessionId, Date.now());
    if (ends.length > 0) await this.#context.emit(sessionId, ends);
    this.#supervisor.start();
  }

  async close(deadlineMs: number, reason: string): Promise<void> {
    await this.#supervisor.close(deadlineMs, reason);
    this.#feed.close();
  }

  async deliver({ body: { messageId, text } }: CommandOf<'message'>, again: boolean): Promise<CommandOutcome> {
    const isKnown = again && (this.#unstarted?.has(messageId) ?? false);
    if (!isKnown) {
      await this.#unstarted?.put({ messageId, text });
      this.#write({ type: 'message', id: messageId, text });
    }
    return { state: 'delivered' };
  }

  async interrupt({ body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const running = this.#context.openWork(this.#options.sessionId).turn?.runId ?? null;
    if (running === null || (body.turnId ?? running) !== running) {
      return { state: 'failed', reason: 'that turn has ended' };
    }
    this.#write({ type: 'interrupt' });
    return { state: 'done' };
  }

  async stop({ body: { taskId } }: CommandOf<'task.stop'>): Promise<CommandOutcome> {
    const isRunning = this.#context.openWork(this.#options.sessionId).tasks.some(({ id }) => id === taskId);
    if (!isRunning) return { state: 'failed', reason: 'this task has ended' };
    this.#write({ type: 'stop', task: taskId });
    return { state: 'done' };
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    const refusal = await this.#requests.answer(command);
    return refusal === null ? { state: 'done' } : { state: 'failed', reason: refusal };
  }

  async #runOnce() {
    const { agent: line, env } = this.#options;
    const request = { command: '/bin/sh', args: ['-c', `exec ${line}`], env: agentEnvironment(env) };
    const agent = new AgentProcess({ ...request, signal: this.#supervisor.signal }, (text) =>
      this.#context.log('debug', `agent: ${text.trim()}`),
    );
    this.#agent = agent;
    this.#supervisor.process = { state: 'running', pid: agent.pid, exitCode: null };
    agent.child.stdin.on('error', (error) =>
      this.#context.log('debug', `the agent closed its stdin: ${error.message}`),
    );
    const lines = new JsonLines({
      onValue: (value) => this.#received(fieldsOf(value)),
      onUnreadable: (why, text) => this.#context.log('warn', `a line from the agent is ${why}: ${text}`),
    });
    agent.child.stdout.on('data', (chunk: Buffer) => lines.write(chunk));
    agent.child.stdout.on('end', () => lines.end());
    for (const { messageId, text } of this.#unstarted?.all ?? []) this.#write({ type: 'message', id: messageId, text });
    const exit = await agent.exited;
    this.#agent = null;
    const { exitCode, signal } = exit;
    return { reason: exitText(exit), exitCode, signal };
  }

  #received(message: Fields): void {
    void this.#feed.pass({ dir: 'in', msg: message });
    if (message.type === 'log') this.#context.log(levelOf(message.level), textOf(message.text) ?? '');
    // The transcript has the message from here on.
    if (message.type === 'turn-start') this.#unstarted?.remove(textsOf(message.messages));
    const requestId = textOf(message.request);
    if (requestId === null) return;
    const { sessionId } = this.#options;
    if (message.type === 'answered') this.#requests.release(sessionId, requestId);
    if (message.type !== 'ask') return;
    this.#requests.hold({
      sessionId,
      requestId,
      kind: message.kind === 'question' ? 'question' : 'permission',
      tool: textOf(message.tool),
      input: message.input,
      deliver: (answer) => this.#give(requestId, answer),
    });
  }

  #give(id: string, answer: RequestAnswer): null {
    const content =
      answer.kind === 'question'
        ? { answers: answer.answers }
        : { allow: answer.kind === 'permission' && answer.isAllowed };
    this.#write({ type: 'answer', id, ...content });
    return null;
  }

  /** Does nothing while the agent restarts: the new process receives every unstarted message. */
  #write(message: Fields): void {
    if (this.#agent === null) return;
    void this.#feed.pass({ dir: 'out', msg: message });
    this.#agent.child.stdin.write(`${JSON.stringify(message)}\n`);
  }
}

function levelOf(level: unknown): 'debug' | 'info' | 'warn' | 'error' {
  const known = parseLevel(textOf(level) ?? '');
  return known === null ? 'info' : known === 'fatal' ? 'error' : known;
}

const KIND = 'trivial';

/** Translates the trivial agent's lines into AG-UI events. Runs, texts, tasks and requests keep the agent's ids. */
class TrivialAdapter implements WireAdapter {
  readonly #writer: SessionWriter;
  readonly dueAt = null;

  constructor({ sessionOf, newRunId }: WireAdapterOptions) {
    this.#writer = new SessionWriter({ sessionId: sessionOf(KIND), newRunId });
  }

  read({ dir, msg }: WireFrame, now: number): EmittedEvent[] {
    const line = fieldsOf(msg);
    const writer = this.#writer;
    writer.at(now);
    const type = textOf(line.type) ?? '';
    const emit = dir === 'in' && Object.hasOwn(EMIT, type) ? EMIT[type] : undefined;
    if (emit !== undefined) emit(writer, line);
    else if (dir === 'in' && type !== 'log') writer.raw(msg, KIND);
    else if (type === 'message') writer.dashboardMessage(textOf(line.id) ?? '', textOf(line.text) ?? '');
    return writer.drain();
  }

  elapsed(): EmittedEvent[] {
    return [];
  }

  ended(end: WireEnd, now: number): EmittedEvent[] {
    this.#writer.at(now);
    this.#writer.end(end);
    return this.#writer.drain();
  }
}

const text = (value: unknown) => textOf(value) ?? '';

const EMIT: Record<string, (writer: SessionWriter, line: Fields) => void> = {
  'turn-start': (writer, { turn, messages, task }) => {
    const trigger = { kind: 'task' as const, taskIds: textsOf([task]) };
    const isUser = textOf(task) === null;
    const cause = isUser
      ? { kind: 'user' as const, userMessageIds: textsOf(messages) }
      : { kind: 'between-run' as const, trigger };
    writer.begin(cause, textOf(turn) ?? undefined);
  },
  say: (writer, { id, text: content }) => {
    writer.parts().setText('text', text(id), text(content));
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
    writer.resolved(text(request), OUTCOMES.find((known) => known === outcome) ?? 'unknown');
  },
  'turn-end': (writer, { status, reason }) => {
    if (status === 'failed') writer.finish({ kind: 'failed', message: text(reason) });
    else writer.finish({ kind: status === 'interrupted' ? 'cancelled' : 'success' });
  },
};

const OUTCOMES = ['allowed', 'denied', 'answered', 'cancelled'] as const;

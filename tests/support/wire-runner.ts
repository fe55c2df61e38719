import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Command } from '@interlude/protocol/commands';
import { WAIT_MS } from './timeouts';

/** A minimal runner: receives an agent's commands and acknowledges them on request. */
export class WireRunner {
  readonly #server: { url: string; token: string };
  readonly #agentId: string;
  readonly #runner = `runner-${Math.random().toString(36).slice(2)}`;
  readonly #startedAt = Date.now();
  readonly #abort = new AbortController();
  readonly #waiting = new Set<() => void>();
  /** Received commands in order, deduplicated. */
  readonly commands: Command[] = [];
  /** The error that broke its stream. */
  #failure: unknown = null;

  #onCommand: ((command: Command, runner: WireRunner) => void) | undefined;

  private constructor(server: { url: string; token: string }, agentId: string) {
    this.#server = server;
    this.#agentId = agentId;
  }

  /** Resolves once the server counts the runner as connected. */
  static async connect(
    server: { url: string; token: string },
    agentId: string,
    onCommand?: (command: Command, runner: WireRunner) => void,
  ): Promise<WireRunner> {
    const runner = new WireRunner(server, agentId);
    runner.#onCommand = onCommand;
    const query = new URLSearchParams({ runner: runner.#runner, startedAt: String(runner.#startedAt), after: '0' });
    const response = await fetch(`${runner.#base()}/commands?${query}`, {
      headers: runner.#headers(),
      signal: runner.#abort.signal,
    });
    if (response.status !== 200 || response.body === null) throw new Error(await response.text());
    void runner.#read(response.body);
    return runner;
  }

  /** Returns the next command of this type. @throws Error if none arrives */
  async next<Type extends Command['type']>(type: Type): Promise<Extract<Command, { type: Type }>> {
    let isLate = false;
    let wake = () => {};
    const timer = setTimeout(() => {
      isLate = true;
      wake();
    }, WAIT_MS);
    try {
      for (;;) {
        const index = this.commands.findIndex((command) => command.type === type);
        if (index >= 0) return this.commands.splice(index, 1)[0] as Extract<Command, { type: Type }>;
        if (isLate) throw new Error(`no ${type} arrived within ${WAIT_MS / 1_000} s`, { cause: this.#failure });
        await new Promise<void>((resolve) => {
          wake = resolve;
          this.#waiting.add(resolve);
        });
      }
    } finally {
      clearTimeout(timer);
    }
  }

  async acknowledge(command: Command, state: 'delivered' | 'done' | 'failed', reason?: string): Promise<void> {
    const response = await fetch(`${this.#base()}/commands/${command.id}/ack`, {
      method: 'POST',
      headers: { ...this.#headers(), 'content-type': 'application/json' },
      body: JSON.stringify({ state, reason, runner: this.#runner, startedAt: this.#startedAt }),
    });
    if (!response.ok) throw new Error(await response.text());
  }

  /** Closes its stream, as a stopping runner does. */
  leave(): void {
    this.#abort.abort();
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const known = new Set<string>();
    let text = '';
    try {
      for await (const chunk of body.pipeThrough(
        new TextDecoderStream() as never,
      ) as unknown as AsyncIterable<string>) {
        text += chunk;
        const frames = text.split('\n\n');
        text = frames.pop() ?? '';
        for (const frame of frames) {
          if (!/^event: ?command$/m.test(frame)) continue;
          const data = frame.match(/^data: ?(.*)$/m)?.[1];
          const command = JSON.parse(data ?? 'null') as Command;
          if (known.has(command.id)) continue;
          known.add(command.id);
          this.commands.push(command);
          this.#onCommand?.(command, this);
        }
        for (const resolve of this.#waiting) resolve();
        this.#waiting.clear();
      }
    } catch (error) {
      // fail pending waits for a command
      if (!this.#abort.signal.aborted) this.#failure = error;
    }
  }

  #base(): string {
    return `${this.#server.url}/api/v1/agents/${encodeURIComponent(this.#agentId)}`;
  }

  #headers(): Record<string, string> {
    return { authorization: `Bearer ${this.#server.token}` };
  }
}

/** The start or end of a turn that answers these messages. */
export function turnOf(type: 'RUN_STARTED' | 'RUN_FINISHED', runId: string, userMessageIds: string[]): AgUiEvent {
  return { type, threadId: 's', runId, metadata: { interlude: { turn: 'user', userMessageIds } } };
}

/** An agent's message, optionally as a reply. */
export function answer(id: string, text: string, replyTo: string[] = []): AgUiEvent[] {
  return [
    { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant', metadata: { interlude: { replyTo } } },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: text },
    { type: 'TEXT_MESSAGE_END', messageId: id },
  ];
}

export function requestOpened(value: Record<string, unknown>): AgUiEvent {
  return { type: 'CUSTOM', name: 'request:opened', value };
}

export function requestResolved(id: string, outcome: string): AgUiEvent {
  return { type: 'CUSTOM', name: 'request:resolved', value: { request_id: id, outcome } };
}

import { clientIdOfWake, MAX_WOKEN_FOR } from '@/lib/adapters/codex/client-id';
import type { ToldEvent } from '@/lib/adapters/wire';
import { CUSTOM } from '@/lib/protocol/ag-ui';
import type { WakeRule } from '@/lib/protocol/commands';
import { cutText } from '@/lib/protocol/cut-text';
import { fieldsOf, numberOf, textOf } from '@/lib/protocol/fields';
import type { CommandOutcome } from '@/lib/runner/commands/seen-commands';
import type { SourceSurroundings } from '@/lib/runner/host/source';

/** A background task that has ended, as far as waking its agent needs it. */
interface EndedTask {
  id: string;
  description: string;
  status: string;
  exitCode: number | null;
  /** The end of what it wrote. */
  output: string;
  /** The rule has to wake the agent for it, and has not yet. */
  isDue: boolean;
}

/** What is sent to Codex so that it begins a turn. */
export interface Wake {
  clientId: string;
  taskIds: string[];
  /** What Codex shows as the message that began the turn. */
  text: string;
  /** By whom, by name: what Interlude says, and what commands have written. */
  context: Record<
    string,
    { kind: 'application' | 'untrusted'; value: string /** `[a-z][a-z0-9_]{0,63}` */; name?: string }
  >;
}

const MAX_ENDED = 20;
/** UTF-16 units. */
const MAX_OUTPUT = 4_000;
const MAX_DESCRIPTION = 500;
/** What ends within this time wakes the agent once. */
const TOGETHER_MS = 1_000;

/**
 * Waking the agent of one session with the results of its background tasks, of which Codex never tells it: by hand, or
 * by a rule.
 *
 * Ordering: an end is stored with the word that it has to wake the agent; that is taken back once Codex has the message.
 * Failure: a runner that was killed in between leaves it to the next one. Codex has the name of a wake, so that is
 * asked before it is sent again.
 */
export class Wakes {
  readonly #around: SourceSurroundings;
  readonly #sessionId: string;
  readonly #send: (wake: Wake) => Promise<CommandOutcome>;
  readonly #stopped = new Set<string>();
  readonly #outputs = new Map<string, string>();
  #ended: EndedTask[];
  #when: WakeRule;
  #timer: NodeJS.Timeout | undefined;

  /** @param send hands it to Codex, unless Codex has it */
  static async recall(
    around: SourceSurroundings,
    sessionId: string,
    send: (wake: Wake) => Promise<CommandOutcome>,
  ): Promise<Wakes> {
    const [rule, ended] = [ruleCursor(sessionId), endedCursor(sessionId)];
    const when = (await around.cursors(rule)).get(rule) === 'command-ended' ? 'command-ended' : 'never';
    const stored = (await around.cursors(ended)).get(ended);
    return new Wakes(around, sessionId, send, when, stored === undefined ? [] : (JSON.parse(stored) as EndedTask[]));
  }

  private constructor(
    around: SourceSurroundings,
    sessionId: string,
    send: (wake: Wake) => Promise<CommandOutcome>,
    when: WakeRule,
    ended: EndedTask[],
  ) {
    this.#around = around;
    this.#sessionId = sessionId;
    this.#send = send;
    this.#when = when;
    this.#ended = ended;
  }

  /** What the session's adapter has told. @param isTurnOpen behind it */
  told(events: readonly ToldEvent[], isTurnOpen: boolean): void {
    for (const { event } of events) {
      const value = fieldsOf(event.value);
      const id = textOf(value.task_id);
      if (id === null) continue;
      if (event.name === CUSTOM.taskStarted && value.task_type === 'local_bash') {
        this.#outputs.set(id, '');
        this.#remember({ id, description: textOf(value.description) ?? id, status: 'running' });
      }
      if (event.name === CUSTOM.taskOutput && this.#outputs.has(id)) {
        const before = value.from === 0 ? '' : (this.#outputs.get(id) ?? '');
        this.#outputs.set(id, (before + (textOf(value.text) ?? '')).slice(-MAX_OUTPUT));
      }
      if (event.name === CUSTOM.taskCompleted) this.#over(id, value, isTurnOpen);
    }
  }

  /** A person has ended it: that is no news for the agent. */
  stopped(taskId: string): void {
    this.#stopped.add(taskId);
  }

  async setRule(when: WakeRule): Promise<void> {
    this.#when = when;
    if (when === 'never') this.#ended = this.#ended.map((one) => ({ ...one, isDue: false }));
    await this.#around.emit(this.#sessionId, [], [{ name: ruleCursor(this.#sessionId), value: when }, this.#cursor()]);
  }

  async wake(commandId: string, taskId: string): Promise<CommandOutcome> {
    const task = this.#ended.find(({ id }) => id === taskId);
    if (task === undefined) return { state: 'failed', reason: 'the runner does not know how this task ended' };
    if (task.status === 'running') return { state: 'failed', reason: 'this task still runs' };
    return await this.#send(wakeFor(commandId, [task]));
  }

  /** Codex is there again: what was due goes to it. */
  goOn(): void {
    if (this.#ended.some(({ isDue }) => isDue)) this.#arm();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #over(id: string, { status, exit_code: code }: Record<string, unknown>, isTurnOpen: boolean): void {
    const task = this.#ended.find((one) => one.id === id);
    if (task === undefined || task.status !== 'running') return;
    const output = this.#outputs.get(id) ?? '';
    this.#outputs.delete(id);
    const byPerson = this.#stopped.delete(id) || status === 'stopped' || status === 'lost';
    const isDue = this.#when === 'command-ended' && !byPerson && !isTurnOpen;
    this.#remember({ ...task, status: textOf(status) ?? 'completed', exitCode: numberOf(code), output, isDue });
    if (isDue) this.#arm();
  }

  #arm(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => void this.#fire(), TOGETHER_MS);
    this.#timer.unref();
  }

  async #fire(): Promise<void> {
    this.#timer = undefined;
    const due = this.#ended.filter(({ isDue }) => isDue).slice(0, MAX_WOKEN_FOR);
    if (due.length === 0) return;
    const { state, reason } = await this.#send(wakeFor('rule', due));
    if (state === 'failed') {
      this.#around.log('warn', `the agent was not woken: ${reason}`);
      return;
    }
    const done = new Set(due.map(({ id }) => id));
    this.#ended = this.#ended.map((one) => (done.has(one.id) ? { ...one, isDue: false } : one));
    await this.#around.emit(this.#sessionId, [], [this.#cursor()]);
  }

  #remember(task: Pick<EndedTask, 'id' | 'description' | 'status'> & Partial<EndedTask>): void {
    const whole = { exitCode: null, output: '', isDue: false, ...task };
    const description = cutText(task.description, MAX_DESCRIPTION);
    this.#ended = [...this.#ended.filter(({ id }) => id !== task.id), { ...whole, description }].slice(-MAX_ENDED);
    void this.#around.emit(this.#sessionId, [], [this.#cursor()]);
  }

  #cursor() {
    return { name: endedCursor(this.#sessionId), value: JSON.stringify(this.#ended) };
  }
}

function wakeFor(name: string, tasks: readonly EndedTask[]): Wake {
  const taskIds = tasks.map(({ id }) => id);
  const said = tasks.map(({ description, status, exitCode }) => {
    const how = exitCode === null ? `has ended (${status})` : `has ended with exit code ${exitCode}`;
    return `The background command \`${description}\` ${how}.`;
  });
  const outputs = tasks.flatMap(({ output }, at) => {
    const name = `background_command_output${tasks.length === 1 ? '' : `_${at + 1}`}`;
    const context = { kind: 'untrusted' as const, value: output, name };
    return output === '' ? [] : [[name, context] as const];
  });
  return {
    clientId: clientIdOfWake(name, taskIds),
    taskIds,
    text: said.join('\n'),
    context: {
      interlude: {
        kind: 'application',
        value: `Interlude began this turn, as people asked it to.\n${said.join('\n')}`,
      },
      ...Object.fromEntries(outputs),
    },
  };
}

function ruleCursor(sessionId: string): string {
  return `codex-wake-rule:${sessionId}`;
}

function endedCursor(sessionId: string): string {
  return `codex-ended:${sessionId}`;
}

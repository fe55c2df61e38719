import type { WakeRule } from '@interlude/protocol/commands';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf, numberOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { clientIdOfWake, MAX_WOKEN_FOR } from '../../adapters/codex/turns';
import type { EmittedEvent } from '../../adapters/wire';
import type { CommandOutcome } from '../../host/seen-commands';
import type { SourceContext } from '../../host/source';
import { failed, noticeEvent } from '../../host/source-commands';

/** Ended tasks remembered, besides running and due ones. */
const MAX_ENDED = 20;
const MAX_PENDING = 200;
/**
 * Limit of automatic wakes without a message from a person. An agent that starts a command in each woken turn would
 * otherwise continue forever.
 */
const MOST_IN_A_ROW = 25;
const MAX_OUTPUT = 4_000;
const MAX_DESCRIPTION = 500;
/** Tasks ending within this time share a wake. */
const TOGETHER_MS = 1_000;

/**
 * Wakes the agent with results of background tasks, which Codex never reports to it: on request, or by a rule.
 *
 * Ordering: the end of a task is stored together with the pending wake, which is cleared once Codex has the message.
 * Failure: after a kill the next runner sends the wake. Codex stores wakes by name, so the runner asks Codex before it
 * resends one. See MOST_IN_A_ROW for loops.
 */
export class TaskWakes {
  readonly #context: SourceContext;
  readonly #sessionId: string;
  readonly #send: (wake: Wake) => Promise<CommandOutcome>;
  readonly #stopped = new Set<string>();
  readonly #outputs = new Map<string, string>();
  #ended: EndedTask[];
  #rule: WakeRule;
  /** Automatic wakes since the last message of a person. */
  #inARow: number;
  #timer: NodeJS.Timeout | undefined;

  /** @param send sends a wake unless Codex has it */
  static async restore(
    context: SourceContext,
    sessionId: string,
    send: (wake: Wake) => Promise<CommandOutcome>,
  ): Promise<TaskWakes> {
    const [rule, ended] = [ruleCursor(sessionId), endedCursor(sessionId)];
    const when = (await context.cursors(rule)).get(rule) === 'command-ended' ? 'command-ended' : 'never';
    const stored = (await context.cursors(ended)).get(ended);
    const row = rowCursor(sessionId);
    const inARow = Number((await context.cursors(row)).get(row) ?? 0);
    const known = stored === undefined ? [] : (JSON.parse(stored) as EndedTask[]);
    return new TaskWakes(context, sessionId, send, when, known, inARow);
  }

  private constructor(
    context: SourceContext,
    sessionId: string,
    send: (wake: Wake) => Promise<CommandOutcome>,
    when: WakeRule,
    ended: EndedTask[],
    inARow: number,
  ) {
    this.#context = context;
    this.#sessionId = sessionId;
    this.#send = send;
    this.#rule = when;
    this.#ended = ended;
    this.#inARow = inARow;
    for (const { id, status } of ended) if (status === 'running') this.#outputs.set(id, '');
  }

  /** @param isTurnOpen true if a turn is open after the events */
  observe(events: readonly EmittedEvent[], isTurnOpen: boolean): void {
    for (const { event } of events) {
      if (event.type === 'RUN_STARTED' && event.metadata?.interlude?.turn === 'user') this.#resetCount();
      const value = fieldsOf(event.value);
      const id = textOf(value.task_id);
      if (id === null) continue;
      if (event.name === CUSTOM.taskStarted && value.task_type === 'local_bash') {
        this.#outputs.set(id, '');
        this.#update({ id, description: textOf(value.description) ?? id, status: 'running' });
      }
      if (event.name === CUSTOM.taskOutput && this.#outputs.has(id)) {
        const before = value.from === 0 ? '' : (this.#outputs.get(id) ?? '');
        this.#outputs.set(id, (before + (textOf(value.text) ?? '')).slice(-MAX_OUTPUT));
      }
      if (event.name === CUSTOM.taskCompleted) this.#taskEnded(id, value, isTurnOpen);
    }
  }

  /** Notes that a person stopped the task: its end does not wake the agent. */
  stopped(taskId: string): void {
    this.#stopped.add(taskId);
  }

  async setRule(when: WakeRule): Promise<void> {
    this.#rule = when;
    this.#resetCount();
    if (when === 'never') this.#ended = this.#ended.map((one) => ({ ...one, isDue: false }));
    await this.#context.emit(this.#sessionId, [], [{ name: ruleCursor(this.#sessionId), value: when }, this.#cursor()]);
  }

  async wake(commandId: string, taskId: string): Promise<CommandOutcome> {
    const task = this.#ended.find(({ id }) => id === taskId);
    if (task === undefined) return failed('the runner does not know how this task ended');
    if (task.status === 'running') return failed('this task is still running');
    this.#resetCount();
    return await this.#send(createWake(commandId, [task]));
  }

  /** Sends due wakes, because Codex is connected again. */
  resume(): void {
    if (this.#ended.some(({ isDue }) => isDue)) this.#schedule();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #taskEnded(id: string, { status, exit_code: code }: Record<string, unknown>, isTurnOpen: boolean): void {
    const task = this.#ended.find((one) => one.id === id);
    if (task === undefined || task.status !== 'running') return;
    const output = this.#outputs.get(id) ?? '';
    this.#outputs.delete(id);
    const wasStopped = this.#stopped.delete(id) || status === 'stopped' || status === 'lost';
    const isWanted = this.#rule === 'command-ended' && !wasStopped && !isTurnOpen;
    const isDue = isWanted && this.#inARow < MOST_IN_A_ROW;
    if (isWanted && !isDue) this.#reportLimit();
    this.#update({ ...task, status: textOf(status) ?? 'completed', exitCode: numberOf(code), output, isDue });
    if (isDue) this.#schedule();
  }

  #schedule(): void {
    if (this.#timer !== undefined) return;
    const onError = (error: Error) => this.#context.log('warn', `could not wake the agent: ${error.message}`);
    this.#timer = setTimeout(() => void this.#fire().catch(onError), TOGETHER_MS);
    this.#timer.unref();
  }

  async #fire(): Promise<void> {
    this.#timer = undefined;
    const due = await this.#dueTogether();
    if (due.length === 0) return;
    const { state, reason } = await this.#send(createWake('rule', due));
    if (state === 'failed') {
      this.#context.log('warn', `could not wake the agent: ${reason}`);
      return;
    }
    const done = new Set(due.map(({ id }) => id));
    this.#ended = this.#ended.map((one) => (done.has(one.id) ? { ...one, isDue: false, isSent: false } : one));
    this.#inARow += 1;
    await this.#context.emit(this.#sessionId, [], [this.#cursor(), this.#rowCursor()]);
    this.resume();
  }

  /** Returns the due tasks of one wake. Stores them first, so that the next process repeats exactly this wake. */
  async #dueTogether(): Promise<EndedTask[]> {
    const due = this.#ended.filter(({ isDue }) => isDue);
    const sent = due.filter(({ isSent }) => isSent === true);
    if (due.length === 0 || sent.length > 0) return sent;
    const some = new Set(due.slice(0, MAX_WOKEN_FOR).map(({ id }) => id));
    this.#ended = this.#ended.map((one) => (some.has(one.id) ? { ...one, isSent: true } : one));
    await this.#context.emit(this.#sessionId, [], [this.#cursor()]);
    return this.#ended.filter(({ id }) => some.has(id));
  }

  #resetCount(): void {
    if (this.#inARow === 0) return;
    this.#inARow = 0;
    void this.#context.emit(this.#sessionId, [], [this.#rowCursor()]);
  }

  #reportLimit(): void {
    if (this.#inARow > MOST_IN_A_ROW) return;
    this.#inARow += 1;
    const text = `The agent was woken automatically ${MOST_IN_A_ROW} times without a message from you. Send it a message to re-enable automatic wakes.`;
    void this.#context.emit(this.#sessionId, [noticeEvent(text, 'warning')], [this.#rowCursor()]);
  }

  #update(task: Pick<EndedTask, 'id' | 'description' | 'status'> & Partial<EndedTask>): void {
    const whole = { exitCode: null, output: '', isDue: false, ...task };
    const description = truncateText(task.description, MAX_DESCRIPTION);
    const all = [...this.#ended.filter(({ id }) => id !== task.id), { ...whole, description }];
    const isPending = ({ status, isDue }: EndedTask) => status === 'running' || isDue;
    const kept = new Set([
      ...all.filter(isPending).slice(-MAX_PENDING),
      ...all.filter((one) => !isPending(one)).slice(-MAX_ENDED),
    ]);
    this.#ended = all.filter((one) => kept.has(one));
    for (const one of all) if (!kept.has(one)) this.#outputs.delete(one.id);
    void this.#context.emit(this.#sessionId, [], [this.#cursor()]);
  }

  #cursor() {
    return { name: endedCursor(this.#sessionId), value: JSON.stringify(this.#ended) };
  }

  #rowCursor() {
    return { name: rowCursor(this.#sessionId), value: this.#inARow === 0 ? null : `${this.#inARow}` };
  }
}

function ruleCursor(sessionId: string): string {
  return `codex-wake-rule:${sessionId}`;
}

function rowCursor(sessionId: string): string {
  return `codex-wakes-in-a-row:${sessionId}`;
}

function endedCursor(sessionId: string): string {
  return `codex-ended:${sessionId}`;
}

/** A background task, running or ended. */
interface EndedTask {
  id: string;
  description: string;
  status: string;
  exitCode: number | null;
  /** Last part of its output. */
  output: string;
  /** True if the rule must still wake the agent for the task. */
  isDue: boolean;
  /** True if it is part of the last sent wake, whose delivery is unknown. */
  isSent?: boolean;
}

/** Input of a turn that wakes the agent. */
export interface Wake {
  clientId: string;
  taskIds: string[];
  /** Text that Codex shows as the message of the turn. */
  text: string;
  /** Context from Interlude and command output, by name. */
  context: Record<
    string,
    { kind: 'application' | 'untrusted'; value: string /** `[a-z][a-z0-9_]{0,63}` */; name?: string }
  >;
}

/** @param name identifies the wake when it is sent again */
function createWake(name: string, tasks: readonly EndedTask[]): Wake {
  const taskIds = tasks.map(({ id }) => id);
  const texts = tasks.map(({ description, status, exitCode }) => {
    const how = exitCode === null ? `ended (${status})` : `ended with exit code ${exitCode}`;
    return `The background command \`${description}\` ${how}.`;
  });
  const outputs = tasks.flatMap(({ output }, index) => {
    const name = `background_command_output${tasks.length === 1 ? '' : `_${index + 1}`}`;
    const context = { kind: 'untrusted' as const, value: output, name };
    return output === '' ? [] : [[name, context] as const];
  });
  return {
    clientId: clientIdOfWake(name, taskIds),
    taskIds,
    text: texts.join('\n'),
    context: {
      interlude: {
        kind: 'application',
        value: `Interlude started this turn on request.\n${texts.join('\n')}`,
      },
      ...Object.fromEntries(outputs),
    },
  };
}
